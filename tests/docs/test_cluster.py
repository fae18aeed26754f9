"""The batch files of the guide to clusters: their commands, and what they do at SIGTERM.

Slurm's command, ``wirelessfl`` and ``torchrun`` are scripts that log their arguments.
"""

import itertools
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.docs.pages import GUIDES
from wirelessfl.cli.main import main
from wirelessfl.cli.sweep import config_value
from wirelessfl.config import Config

PAGE = (GUIDES / "cluster.md").read_text(encoding="utf-8")
FILES = ("sweep", "torchrun")
LOGS = """#!/bin/bash
printf '%q ' "$0" "$@" >>log; echo >>log
"""
WORKS = """trap 'echo terminated >>log; exit {status}' TERM
while :; do sleep 0.05; done
"""


@pytest.fixture
def node(tmp_path):
    """A folder from which jobs are submitted; gives a function that starts a batch file."""
    commands = tmp_path / ".venv" / "bin"
    commands.mkdir(parents=True)

    def start(name, body="", **environment):
        for command in ("wirelessfl", "torchrun", "scontrol"):
            file = commands / command
            file.write_text(LOGS + (body if command != "scontrol" else ""))
            file.chmod(0o755)
        (tmp_path / "log").unlink(missing_ok=True)
        return subprocess.Popen(
            ["bash", GUIDES / f"{name}.sbatch"],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", **environment},
        )

    def log():
        lines = (tmp_path / "log").read_text().splitlines() if (tmp_path / "log").exists() else []
        return [[Path(words[0]).name, *words[1:]] for words in map(shlex.split, lines)]

    start.folder, start.log = tmp_path, log
    return start


@pytest.mark.parametrize("name", FILES)
def test_the_page_shows_the_file(name):
    text = (GUIDES / f"{name}.sbatch").read_text(encoding="utf-8")
    assert f"\n```bash\n{text}```\n" in PAGE
    assert f"]({name}.sbatch)" in PAGE
    done = subprocess.run(["bash", "-n", GUIDES / f"{name}.sbatch"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def settings_of(words, monkeypatch):
    """The configurations of a logged command of ``wirelessfl``."""
    seen = []

    def read(configs, *args, **kwargs):
        seen.extend([configs] if isinstance(configs, Config) else configs)
        raise KeyboardInterrupt

    monkeypatch.setattr("wirelessfl.runs.sweep.sweep", read)
    monkeypatch.setattr("wirelessfl.runs.run.run", read)
    main(words)
    return seen


def test_the_tasks_of_the_array_are_all_combinations(node, monkeypatch, tmp_path):
    text = (GUIDES / "sweep.sbatch").read_text(encoding="utf-8")
    first, last = map(int, re.search(r"--array=(\d+)-(\d+)%", text).groups())
    found = []
    monkeypatch.chdir(tmp_path)
    for task in range(first, last + 1):
        job = node("sweep", SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_JOB_ID="7")
        assert job.wait() == 0
        [[command, *words]] = node.log()  # nothing is requeued
        assert command == "wirelessfl"
        [config] = settings_of(words, monkeypatch)
        found.append(tuple(config_value(config, name) for name in ("cells", "lr", "seed")))
    assert sorted(found) == [*itertools.product((2, 4), (0.01, 0.05), (1, 2, 3))]


def test_a_run_on_several_gpus_starts_or_resumes(node, monkeypatch):
    assert node("torchrun", SLURM_JOB_ID="7").wait() == 0
    out = node.folder / "runs" / "large"
    [[command, *words]] = node.log()
    assert command == "torchrun"
    assert words[: words.index("wirelessfl")] == "--standalone --nproc-per-node 4 -m --".split()
    [config] = settings_of(words[words.index("wirelessfl") + 1 :], monkeypatch)
    assert config.named("algorithm") == "hist"
    assert config.run.out == Path("runs/large")
    out.mkdir(parents=True)
    (out / "config.toml").touch()
    assert node("torchrun", SLURM_JOB_ID="7").wait() == 0
    assert node.log()[0][-3:] == ["wirelessfl", "resume", "runs/large"]


@pytest.mark.parametrize(("name", "status"), [("sweep", 143), ("torchrun", 1)])
def test_a_job_at_its_time_limit_ends_the_run_and_is_requeued(node, name, status):
    slurm = {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_JOB_ID": "7", "SLURM_JOB_ID": "9"}
    job = node(name, WORKS.format(status=status), **slurm)
    until = time.monotonic() + 20
    while not node.log() and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.1)  # the run's own handler
    job.send_signal(signal.SIGTERM)
    assert job.wait(20) == 143
    requeued = "7_3" if name == "sweep" else "9"
    assert node.log()[1:] == [["terminated"], ["scontrol", "requeue", requeued]]


@pytest.mark.parametrize(("name", "status"), [("sweep", 2), ("torchrun", 1)])
def test_a_failed_run_is_not_requeued(node, name, status):
    slurm = {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_JOB_ID": "7", "SLURM_JOB_ID": "9"}
    assert node(name, f"exit {status}\n", **slurm).wait() == status
    assert len(node.log()) == 1
