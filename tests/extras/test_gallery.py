"""The examples of the gallery as notebooks, which are what readers download."""

import json

import pytest

from tests.docs.pages import ROOT
from tests.docs.test_gallery import cases

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("default")]


@cases
def test_notebooks_run_and_show_one_figure(example, tmp_path, monkeypatch):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    gen_gallery = pytest.importorskip("sphinx_gallery.gen_gallery")
    from sphinx_gallery.notebook import jupyter_notebook
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    _, blocks = split_code_and_text_blocks(str(example))
    converted = jupyter_notebook(blocks, dict(gen_gallery.DEFAULT_GALLERY_CONF), str(tmp_path))
    notebook = nbformat.reads(json.dumps(converted), as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(
        notebook, kernel_name="python3", timeout=300, resources=resources
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    figures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(figures) == 1
    assert [*tmp_path.iterdir()] == []
