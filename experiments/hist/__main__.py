"""``python -m experiments.hist NAME --scale {smoke,small,paper}``: the HIST paper's evidence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from experiments.hist import air, figures, tables
from experiments.hist.studies import SCALES, Results, Scale, Study
from experiments.runs import make_runs
from wirelessfl.errors import ConfigError, DataError, TrainingError


class Experiment(NamedTuple):
    """A figure or table of the paper.

    Args:
        study: name of its settings.
        table: its numbers, as Markdown.
        draw: its picture; None for a table.
    """

    study: str
    table: Callable[[Results], str]
    draw: Callable[[Results, Path], list[Path]] | None = None


EXPERIMENTS = {
    "fig3": Experiment("fig3", tables.traffic, figures.fig3),
    "fig4": Experiment("fig3", tables.traffic, figures.fig4),
    "fig5": Experiment("fig5", tables.periods, figures.fig5),
    "fig6": Experiment("fig6", tables.masks, figures.fig6),
    "fig7a": Experiment("fig7a", air.snr_rows, air.fig7a),
    "fig7b": Experiment("fig7b", air.snr_latencies, air.fig7b),
    "fig7c": Experiment("fig7c", air.client_latencies, air.fig7c),
    "fig7d": Experiment("fig7d", air.convention_rows, air.fig7d),
    "fig8": Experiment("fig8", tables.schemes, figures.fig8),
    "table1": Experiment("table1", tables.targets),
    "table2": Experiment("table2", tables.targets),
    "ablations": Experiment("ablations", tables.ablation_rows),
}


def reproduce(
    names: Sequence[str],
    scale: Scale,
    out: Path,
    *,
    data_dir: Path | None = None,
    jobs: int = 1,
    ray: str | None = None,
    only_kept: bool = False,
) -> dict[str, Results]:
    """Make what runs are missing, then write each table and figure into ``out``.

    Args:
        names: keys of ``EXPERIMENTS``.
        scale: how large.
        out: tables and figures go here, and runs below ``runs``, where they are found again.
        data_dir: folder of the data sets.
        jobs: runs at a time, a local process each.
        ray: address of a Ray cluster, or ``local``.
        only_kept: train nothing: draw what is there.

    Returns:
        By name, the runs behind each.
    """
    studies = {name: Study.load(EXPERIMENTS[name].study, scale, data_dir) for name in names}
    if not only_kept:
        planned = [run for study in studies.values() for run in study.planned()]
        make_runs(planned, out / "runs", jobs=jobs, ray=ray)
    out.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, study in studies.items():
        experiment, results = EXPERIMENTS[name], study.results(out / "runs")
        found[name] = results
        if not study.cases:
            print(f"{name}: nothing is run at scale {scale}; see --scale paper")
            continue
        text = experiment.table(results) + tables.not_run(results)
        (out / f"{name}.md").write_text(text, encoding="utf-8")
        print(f"{name}\n\n{text}")
        if experiment.draw is not None and results.where():
            for file in experiment.draw(results, out):
                print(f"drawn: {file}")
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Make one figure or table, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m experiments.hist", description=__doc__)
    parser.add_argument("name", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--data-dir", type=Path, metavar="PATH", help="folder of the data sets")
    parser.add_argument(
        "--out", type=Path, default=Path("results/hist"), metavar="DIR", help="tables and figures"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="runs at a time, one CPU thread each"
    )
    parser.add_argument("--ray", metavar="ADDRESS", help="a Ray cluster instead, or local")
    parser.add_argument("--only-kept", action="store_true", help="draw what is there; no training")
    arguments = parser.parse_args(words)
    names = list(EXPERIMENTS) if arguments.name == "all" else [arguments.name]
    try:
        reproduce(
            names,
            arguments.scale,
            arguments.out,
            data_dir=arguments.data_dir,
            jobs=arguments.jobs,
            ray=arguments.ray,
            only_kept=arguments.only_kept,
        )
    except (ConfigError, DataError, TrainingError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
