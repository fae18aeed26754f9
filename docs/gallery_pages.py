"""The pages of the gallery: their order, notes, and the texts of their figures."""

import warnings
from pathlib import PurePosixPath
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx_gallery.directives import imgsgnode

import wirelessfl

ORDER = [
    "snr_map",
    "aerial_cell",
    "rates",
    "delay_spread",
    "bands_timeline",
    "energy_deadline",
    "devices",
    "mask_sizes",
    "beamforming_bound",
    "aircomp_error",
    "hist",
    "asynchronous",
    "sessions",
    "ra_fed_widths",
    "design_check",
    "own_algorithm",
    "payloads",
    "learning_selection",
    "batteries",
    "moving_clients",
    "handover",
    "hierfl",
    "hier_qsgd",
    "majority_vote",
    "joint_learning",
    "oort",
]
"""Examples of the radio first, then of training, then with parts of one's own; last the ports."""


class InOrder:
    """The sort key of sphinx-gallery, by file name."""

    def __init__(self, src_dir: str) -> None:
        del src_dir

    def __call__(self, filename: str) -> int:
        """The place of an example."""
        return ORDER.index(filename.removeprefix("plot_").removesuffix(".py"))


def quiet(gallery_conf: dict[str, Any], name: str) -> None:
    """Notes are for those who run an example: on a page, they would name a path of the build."""
    warnings.filterwarnings("ignore", category=wirelessfl.Note)


def name_figures(app: Sphinx, page: nodes.document) -> None:
    """The text of a figure is the page's first paragraph: the question, and what is seen.

    That of a thumbnail is the name of its example.
    """
    for image in page.findall(nodes.image):
        stem = PurePosixPath(image["uri"]).name
        if stem.startswith("sphx_glr_plot_") and not image.get("alt"):  # beside its title
            name = stem.removeprefix("sphx_glr_plot_").partition("_thumb")[0]
            image["alt"] = f"Thumbnail of the example {name.replace('_', ' ')}"
    for figure in page.findall(imgsgnode):
        section = next(page.findall(nodes.section))
        paragraph = next(node for node in section if isinstance(node, nodes.paragraph))
        figure["alt"] = " ".join(paragraph.astext().split())


def link_examples(app: Sphinx, page: nodes.document) -> None:
    """A link to an example's file, as the repository shows it, leads to its page of the site."""
    for link in [*page.findall(addnodes.download_reference)]:
        example = PurePosixPath(link["reftarget"])
        _, gallery, place = str(example.with_suffix("")).rpartition("gallery/")
        if gallery:
            target = {"reftype": "doc", "reftarget": f"/examples/{place}"}
            options = {"refdomain": "std", "refexplicit": True, "refdoc": app.env.docname}
            link.replace_self(addnodes.pending_xref("", *link.children, **target, **options))


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the figures' texts and the links to the build."""
    app.connect("doctree-read", name_figures)
    app.connect("doctree-read", link_examples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
