"""``python -m experiments gpu``: steps in order, kept output, and studies that end in time."""

import time

import pytest
import torch

from experiments import gpu
from experiments.__main__ import main
from experiments.gpu import Step, run_for, run_gpu, run_step
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main as command

WAIT = "import time; time.sleep(600)"


@pytest.fixture
def steps(monkeypatch):
    """Two steps, of which the first fails, and studies without runs."""
    found = [
        Step("tests.txt", ("-c", "import sys; print('one failed'); sys.exit(1)")),
        Step("engine.json", ("-c", "print('{}')")),
    ]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu, "steps", lambda data_dir: found)
    monkeypatch.setattr(gpu, "studies", lambda *given: ["-c", ""])
    return found


def test_a_failed_step_does_not_stop_the_others(steps, tmp_path, capsys):
    """Output of a failed step has another name; finished steps are kept by the next call."""
    assert run_gpu(tmp_path) == ["tests.txt"]
    assert {file.name for file in tmp_path.iterdir()} == {"tests.txt.failed", "engine.json"}
    assert (tmp_path / "tests.txt.failed").read_text() == "one failed\n"
    assert (tmp_path / "engine.json").read_text() == "{}\n"
    steps[0] = Step("tests.txt", ("-c", "print('passed')"))
    capsys.readouterr()
    assert run_gpu(tmp_path) == []
    assert "engine.json: kept" in capsys.readouterr().out
    assert (tmp_path / "tests.txt").read_text() == "passed\n"


def test_steps_and_studies_end_when_the_time_is_up(steps, tmp_path, capsys):
    """They end long before their ten minutes; a step without time left has failed."""
    began = time.monotonic()
    assert run_for(0.5, ["-c", WAIT]) == 130
    assert not run_step(Step("slow.txt", ("-c", WAIT)), tmp_path, began + 1)
    assert time.monotonic() - began < 300
    assert "slow.txt: no time left after" in capsys.readouterr().out
    assert run_gpu(tmp_path, minutes=1e-9) == ["tests.txt", "engine.json"]
    assert "studies: no time left" in capsys.readouterr().out


def test_failed_studies_are_reported(steps, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "studies", lambda *given: ["-c", "import sys; sys.exit(1)"])
    steps.pop(0)
    assert run_gpu(tmp_path) == ["studies"]


def test_the_commands_are_those_of_the_package(tmp_path, capsys):
    """Each parser knows all words of its command: it complains of an added one only."""
    for step in gpu.steps(tmp_path)[1:]:
        assert step.words[:2] == ("-m", "wirelessfl")
        with pytest.raises(SystemExit):
            command([*step.words[2:], "--nonsense"])
        assert "unknown flag '--nonsense'" in capsys.readouterr().err
    words = gpu.studies(tmp_path, tmp_path, 1)
    assert words[:2] == ["-m", "experiments"]
    with pytest.raises(SystemExit):
        main([*words[2:], "--nonsense"])
    assert "unknown flag '--nonsense'" in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_there_is_one_error(tmp_path, capsys):
    assert main(["gpu", "--out", str(tmp_path / "out")]) == 2
    assert "this command needs a GPU" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_bad_minutes_are_refused(steps, tmp_path):
    with pytest.raises(ConfigError, match="minutes is 0: give a number above 0"):
        run_gpu(tmp_path / "out", minutes=0)
    assert not (tmp_path / "out").exists()
