"""The examples of pages that need packages which only make test-extras installs."""

import runpy
from pathlib import Path

import pytest

from tests.docs.pages import GUIDES, blocks

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("default")]


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes the files of a page to an empty current folder."""
    monkeypatch.chdir(tmp_path)

    def write(page):
        for _, file, code in blocks(GUIDES / page):
            if file:
                Path(file).parent.mkdir(parents=True, exist_ok=True)
                Path(file).write_text(code, encoding="utf-8")

    return write


def test_the_example_of_trackers_runs(written, monkeypatch):
    """Both trackers have the run."""
    mlflow, _ = pytest.importorskip("mlflow"), pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    written("trackers.md")
    result = runpy.run_path("tracked.py")["result"]
    [_] = result.directory.glob("wandb/offline-run-*/run-*.wandb")
    client = mlflow.MlflowClient("sqlite:///edge.db")
    [run] = client.search_runs([client.get_experiment_by_name("edge").experiment_id])
    assert run.data.metrics["accuracy"] == result.rows[-1]["accuracy"]
