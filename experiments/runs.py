"""The runs of all figures: each is executed once and shared by the figures that need it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from wirelessfl.cli.show import progress, sweep_progress
from wirelessfl.config import Config
from wirelessfl.runs import kept
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.run import resume
from wirelessfl.runs.sweep import sweep


class Planned(NamedTuple):
    """A planned run.

    Args:
        label: shown next to its progress bar.
        config: its settings.
        rank: runs of lower rank run first.
    """

    label: str
    config: Config
    rank: int = 0


def kept_run(label: str, root: Path, algorithm: str, **flags: Any) -> RunResult:
    """The run with these settings: read from disk, resumed, or run.

    Args:
        label: shown next to the progress bar.
        root: folder of all runs.
        algorithm: name of the algorithm.
        flags: settings by flag name.
    """
    config = Config.from_flags(algorithm, **flags)
    with progress(config, Console(stderr=True), label) as show:
        return kept.kept_run(config, root, show)


def make_runs(
    planned: Iterable[Planned], root: Path, *, jobs: int = 1, ray: str | None = None
) -> None:
    """Execute all runs that are not finished below ``root``, in order of rank.

    Args:
        planned: the runs; runs with equal settings are executed once.
        root: folder of all runs.
        jobs: number of local processes; with several, each run uses one CPU thread.
        ray: address of a Ray cluster, or ``local``.
    """
    by_rank = sorted(planned, key=lambda run: run.rank)
    once = {kept.settings_hash(run.config): run for run in reversed(by_rank)}
    todo = [run for run in by_rank if once[kept.settings_hash(run.config)] is run]
    todo = [run for run in todo if not kept.is_finished(run.config, root)]
    labels = [(run.label, run.config.total_rounds) for run in todo]
    with sweep_progress(labels, Console(stderr=True)) as show:
        configs = [run.config for run in todo]
        sweep(configs, root, jobs=jobs, ray=ray, on_row=show)


def kept_results(configs: Sequence[Config], root: Path) -> dict[str, RunResult]:
    """The finished runs among ``configs``, by the hash of their settings."""
    return {
        kept.settings_hash(config): resume(kept.kept_folder(config, root))
        for config in configs
        if kept.is_finished(config, root)
    }
