"""``python -m experiments gpu``: what a machine with a GPU is for, in order of what it decides.

First the tests marked ``gpu``, then the benchmarks of GPUs, of local training and of the simulator,
then the studies with published models and data, until the time is up. Everything is written below
one folder, which can be carried away; started again with this folder, finished steps and runs are
kept.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TextIO

import torch

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import check_writable

MINUTES = 40.0
"""Minutes after which the studies are interrupted; they go on with the next call."""
STOPPED = 130
"""Exit code of a command whose time was up: that of an interrupted one."""
SECONDS = 60
"""Seconds that interrupted runs get to save a checkpoint."""


class Step(NamedTuple):
    """A command whose output is kept.

    Args:
        name: name of the file of its output, which exists once it has succeeded.
        words: arguments of the interpreter.
    """

    name: str
    words: tuple[str, ...]


def steps(data_dir: Path | None) -> list[Step]:
    """The tests and benchmarks, in order."""
    data = () if data_dir is None else ("--data-dir", str(data_dir))
    bench = ("-m", "wirelessfl", "bench")
    return [
        Step("tests.txt", ("-m", "pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider")),
        Step("gpu.json", (*bench, "gpu", "--json", *data)),
        Step("engine.json", (*bench, "engine", "--json", *data)),
        Step("simulator.json", (*bench, "simulator", "--json", *data)),
    ]


def studies(out: Path, data_dir: Path | None, jobs: int) -> list[str]:
    """Arguments of the interpreter that run the studies for a GPU."""
    words = ["-m", "experiments", "queue", "--gpu", "--jobs", str(jobs)]
    words += ["--into", str(out), "--scratch", str(out / "unfinished")]
    return words if data_dir is None else [*words, "--data-dir", str(data_dir)]


def run_gpu(
    out: Path, minutes: float = MINUTES, data_dir: Path | None = None, jobs: int = 1
) -> list[str]:
    """Run all steps, then studies until the time is up.

    Args:
        out: folder of all output: a file per step, and ``PAPER/rows`` with a file per run.
        minutes: minutes in all; the studies are interrupted then, and can be continued.
        data_dir: folder of the data sets.
        jobs: concurrent runs of the studies.

    Returns:
        The names of the steps that failed; ``studies`` if a run failed.
    """
    if not minutes > 0:
        raise ConfigError(f"minutes is {minutes:g}: give a number above 0.")
    if not torch.cuda.is_available():
        raise ConfigError(
            "device is cpu: this command needs a GPU that torch can use "
            "(torch.cuda.is_available() is False). Run it on such a machine; `make test` runs the "
            "same tests on a CPU."
        )
    check_writable(out)
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * minutes
    failed = [step.name for step in steps(data_dir) if not run_step(step, out, end)]
    left = end - time.monotonic()
    if left <= 0:
        print("studies: no time left, raise --minutes or repeat the command", flush=True)
        return failed
    print(f"studies: running for at most {left / 60:.1f} minutes", flush=True)
    if run_for(left, studies(out.resolve(), data_dir, jobs), grace=SECONDS) not in (0, STOPPED):
        failed.append("studies")
    return failed


def run_step(step: Step, out: Path, end: float) -> bool:
    """Run a step until ``end`` unless its output is there; returns whether it has succeeded."""
    file = out / step.name
    if file.is_file():
        print(f"{step.name}: kept", flush=True)
        return True
    print(f"{step.name}: running", flush=True)
    draft = file.with_name(f"{file.name}.failed")
    started = time.monotonic()
    with draft.open("w", encoding="utf-8") as output:
        code = run_for(max(end - started, 0), step.words, output=output)
    seconds = time.monotonic() - started
    if code:
        why = "no time left" if code == STOPPED else "failed"
        print(f"{step.name}: {why} after {seconds:.0f} s, see {draft}", flush=True)
        return False
    draft.replace(file)
    print(f"{step.name}: {seconds:.0f} s", flush=True)
    return True


def run_for(
    seconds: float, words: Sequence[str], grace: float = 0, output: TextIO | None = None
) -> int:
    """Run the interpreter for at most ``seconds``; returns its exit code, ``STOPPED`` if stopped.

    Args:
        seconds: time limit.
        words: arguments of the interpreter.
        grace: seconds between an interrupt at the limit and the end of the process.
        output: receives standard output; None for this process's.
    """
    process = subprocess.Popen([sys.executable, *words], stdout=output)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return STOPPED
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(grace)
            process.kill()
            process.wait()
