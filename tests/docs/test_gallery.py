"""The examples of the gallery: short scripts of public names that draw one figure each."""

import ast
import re
import runpy
import sys

import pytest

from tests.docs.pages import ROOT
from tests.test_docs import private_paths

GALLERY = ROOT / "docs" / "gallery"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))
QUICK = {"snr_map", "bands_timeline", "energy_deadline", "mask_sizes", "own_algorithm"}
"""Examples that take less than a second, and one that trains. The others take 3 to 7 s each."""
cases = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem[5:])


def marked(example):
    name = example.stem[5:]
    return pytest.param(example, marks=[] if name in QUICK else [pytest.mark.thorough], id=name)


@cases
def test_examples_are_short_and_public(example):
    text = example.read_text(encoding="utf-8")
    assert 15 <= len(text.splitlines()) <= 60
    title, line, empty, *question = ast.get_docstring(ast.parse(text)).splitlines()
    assert line == "=" * len(title)
    assert not empty
    assert "?" in " ".join(question)
    assert private_paths(text) == set()
    assert not re.search(r"\bAgg\b|savefig|save_figure|matplotlib\.use|jobs=|workers=", text)
    assert text.endswith("plt.show()\n")


def test_every_example_has_a_place():
    """The order of the gallery names each example once."""
    sys.path.insert(0, str(GALLERY.parent))
    try:
        from gallery_order import ORDER
    finally:
        del sys.path[0]
    assert sorted(ORDER) == [example.stem[5:] for example in EXAMPLES]
    assert len(ORDER) >= 16


@pytest.mark.parametrize("example", [marked(example) for example in EXAMPLES])
def test_examples_draw_one_figure_and_leave_no_file(example, tmp_path, monkeypatch):
    """Its axes have labels, and it needs no data of a folder."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WIRELESSFL_DATA", raising=False)
    monkeypatch.setattr(pyplot, "show", lambda: None)
    pyplot.switch_backend("agg")
    with pyplot.rc_context():
        runpy.run_path(str(example), run_name="__main__")
        try:
            [number] = pyplot.get_fignums()
            panels = pyplot.figure(number).axes
            texts = {f"{a.get_xlabel()}; {a.get_ylabel()}" for a in panels}
            supylabel = pyplot.figure(number).get_supylabel()
            assert all(panel.has_data() for panel in panels)
            assert any(panel.get_xlabel() for panel in panels), texts
            assert supylabel or all(panel.get_ylabel() for panel in panels), texts
            assert re.search(r"\(.+\)|round|clients", " ".join(texts))
        finally:
            pyplot.close("all")
    assert [*tmp_path.iterdir()] == []
