"""``make test``: prints only under ``-n``, runs checks beside the tests, and fails if either fails.

The commands of the virtual environment are replaced by scripts that log their arguments.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMANDS = ("python", "ruff", "mypy")
SCRIPT = """#!/bin/sh
echo "{name} $*" >>"{folder}/log"
{body}
"""
WAITS = """touch "{folder}/{own}"
i=0
while [ ! -e "{folder}/{other}" ]; do
    i=$((i + 1)); [ $i -lt 600 ] || exit 9; sleep 0.05
done
"""


@pytest.fixture
def make(tmp_path):
    """Run ``make`` with fake commands, whose bodies are given by name; returns what they log."""
    for file in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / file, tmp_path)
    commands = tmp_path / ".venv" / "bin"
    commands.mkdir(parents=True)

    def run(*words, **bodies):
        for name in COMMANDS:
            file = commands / name
            body = bodies.get(name, "").format(folder=tmp_path)
            file.write_text(SCRIPT.format(name=name, folder=tmp_path, body=body))
            file.chmod(0o755)
        (tmp_path / ".venv" / ".ready").touch()
        environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
        done = subprocess.run(
            ["make", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        log = tmp_path / "log"
        return done, log.read_text().splitlines() if log.exists() else []

    return run


def test_a_dry_run_prints_the_commands_and_starts_none(make):
    for target in ("test", "test-all", "check", "setup"):
        done, log = make("-n", target)
        assert done.returncode == 0
        assert log == []
    assert "pytest" in make("-n", "test")[0].stdout
    assert "mypy" in make("-n", "test")[0].stdout


def test_checks_run_beside_the_tests_and_print_last(make):
    """Each waits for the other to start: in sequence, the first one would fail."""
    tests = WAITS.format(folder="{folder}", own="tests", other="checks") + "echo tests done"
    python = f'case "$*" in *pytest*)\n{tests}\nesac'  # the pages are read by Python, too
    ruff = WAITS.format(folder="{folder}", own="checks", other="tests") + "echo checks done"
    done, log = make("test", python=python, ruff=ruff)
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[-3:] == ["tests done", "checks done", "checks done"]
    assert sorted(line.split()[0] for line in log) == ["mypy", "python", "python", "ruff", "ruff"]


def test_only_test_runs_a_sample(make):
    """Tests that fail run again without it, since they are named."""
    for target, sampled in (("test", True), ("test-all", False)):
        _, log = make(target, python="exit 1")
        runs = [line for line in log if "pytest" in line][-2:]
        assert ["--sample" in line for line in runs] == [sampled, False]


@pytest.mark.parametrize("tests", [0, 1, 2])
@pytest.mark.parametrize("checks", [{}, {"ruff": "exit 1"}, {"mypy": "exit 1"}])
def test_a_failure_of_tests_or_checks_fails_the_target(make, tests, checks):
    """Failed tests run again to show all values; an aborted run does not."""
    done, log = make("test", python=f"exit {tests}", **checks)
    assert (done.returncode == 0) == (tests == 0 and not checks)
    assert sum(line.startswith("python -m pytest") for line in log) == 1 + (tests == 1)
    assert sum("--last-failed" in line for line in log) == (tests == 1)
