"""The site: ``make docs`` builds pages, reference and gallery into build/docs/html."""

import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = PROJECT["name"]
version = release = PROJECT["version"]
author = copyright = "the wirelessfl developers"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "gallery_pages",
    "reference_pages",
]
sys.path.insert(0, str(Path(__file__).parent))
exclude_patterns = ["conf.py", "gallery"]
SHORT = tags.has("short")  # noqa: F821, Sphinx defines it; links and words only
if not SHORT:
    extensions.append("sphinx.ext.viewcode")
if tags.has("online"):  # noqa: F821, make docs ONLINE=1
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "torch": ("https://docs.pytorch.org/docs/stable", None),
        "sionna": ("https://nvlabs.github.io/sionna", None),
        "cvxpy": ("https://www.cvxpy.org", None),
    }
if find_spec("latex2mathml"):  # otherwise formulas need a network: MathJax
    extensions.append("mathml")
    html_math_renderer = "mathml"
nitpicky = False

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {
    name: name
    for name in ("ArrayLike", "BoolArray", "ComplexArray", "FloatArray", "IntArray", "Tensor")
}
python_maximum_signature_line_length = 88
default_role = "code"
smartquotes = False  # flags begin with two hyphens
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

plot_gallery = str(not SHORT)
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "within_subsection_order": "gallery_pages.InOrder",
    "reset_modules": ("matplotlib", "gallery_pages.quiet"),
    "backreferences_dir": "examples/backreferences",
    "doc_module": ("channels", "solvers", "wirelessfl"),
    "inspect_global_variables": True,
    "capture_repr": (),
    "image_srcset": ["2x"],
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 3600,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "wirelessfl"
html_theme_options = {
    "header_links_before_dropdown": 5,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "static" / "scorer.js")
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
