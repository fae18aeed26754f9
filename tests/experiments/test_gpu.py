"""``python -m experiments gpu``: steps in order, kept output, and studies that end in time."""

import sys
import time

import pytest
import torch

from experiments import gpu
from experiments.__main__ import main
from experiments.gpu import Step, run_gpu
from wirelessfl.errors import ConfigError

WAIT = "import sys, time; print('begun', flush=True); time.sleep(600)"


@pytest.fixture
def steps(monkeypatch):
    """Two steps, of which the first fails, and studies that do not end by themselves."""
    found = [
        Step("tests.txt", ("-c", "import sys; print('one failed'); sys.exit(1)")),
        Step("engine.json", ("-c", "print('{}')")),
    ]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu, "steps", lambda data_dir: found)
    monkeypatch.setattr(gpu, "studies", lambda *given: ["-c", WAIT])
    return found


def test_a_failed_step_does_not_stop_the_others(steps, tmp_path, capsys):
    """Output of a failed step has another name; finished steps are kept by the next call."""
    began = time.monotonic()
    assert run_gpu(tmp_path, minutes=1 / 60) == ["tests.txt"]
    assert time.monotonic() - began < 60, "the studies were interrupted"
    assert {file.name for file in tmp_path.iterdir()} == {"tests.txt.failed", "engine.json"}
    assert (tmp_path / "tests.txt.failed").read_text() == "one failed\n"
    assert (tmp_path / "engine.json").read_text() == "{}\n"
    steps[0] = Step("tests.txt", ("-c", "print('passed')"))
    capsys.readouterr()
    assert run_gpu(tmp_path, minutes=1e-3) == []
    assert "engine.json: kept" in capsys.readouterr().out
    assert (tmp_path / "tests.txt").read_text() == "passed\n"


def test_failed_studies_are_reported(steps, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "studies", lambda *given: ["-c", "import sys; sys.exit(1)"])
    steps.pop(0)
    assert run_gpu(tmp_path, minutes=1) == ["studies"]


def test_the_commands_are_those_of_the_package(tmp_path):
    """Each command is accepted by its parser."""
    import subprocess

    for words in (
        *(step.words[:3] for step in gpu.steps(None)[1:]),
        gpu.studies(tmp_path, None, 1),
    ):
        given = [sys.executable, *words, "--help"]
        assert subprocess.run(given, capture_output=True, check=False).returncode == 0, words


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_there_is_one_error(tmp_path, capsys):
    assert main(["gpu", "--out", str(tmp_path / "out")]) == 2
    assert "this command needs a GPU" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_bad_minutes_are_refused(steps, tmp_path):
    with pytest.raises(ConfigError, match="minutes is 0: give a number above 0"):
        run_gpu(tmp_path / "out", minutes=0)
    assert not (tmp_path / "out").exists()
