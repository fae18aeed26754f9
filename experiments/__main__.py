"""``python -m experiments {list,claims,pages,queue,gpu,check,seal}``: runs of all papers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments import figures_page, pages
from experiments.check import SAMPLE, check
from experiments.claims import TITLES, assess
from experiments.claims_page import table, totals, write
from experiments.evidence import Evidence
from experiments.gpu import MINUTES, run_gpu
from experiments.paper import exit_code
from experiments.papers import papers
from experiments.queue import entries, gpu_entries, run_queue
from experiments.seal import seal_all
from experiments.studies import SCALES
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli.parser import Parser


def _folder(name: str) -> str:
    """The folder of a paper whose name may be written with hyphens."""
    return name.replace("-", "_")


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = Parser(
        prog="python -m experiments", description="Claims, results pages and runs of all papers."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    figures = commands.add_parser("list", help="print which command shows which figure and table")
    figures.add_argument(
        "paper", nargs="?", choices=[*TITLES], type=_folder, help="only this paper"
    )
    claims = commands.add_parser("claims", help="print all claims with outcomes; write the pages")
    claims.add_argument(
        "paper",
        nargs="?",
        choices=[*TITLES],
        type=_folder,
        help="print the claims of this paper only, without writing the page",
    )
    commands.add_parser("pages", help="write claims, tables and figures of docs/results")
    queue = commands.add_parser("queue", help="make all missing runs, at low priority")
    queue.add_argument("--scale", choices=SCALES, default="small", help="size of the runs (small)")
    queue.add_argument(
        "--into",
        type=Path,
        metavar="DIR",
        help="folder whose subfolders PAPER/rows receive rows (this repository's experiments)",
    )
    queue.add_argument(
        "--scratch",
        type=Path,
        default=Path("results/queue"),
        metavar="DIR",
        help="folder of unfinished runs (results/queue)",
    )
    queue.add_argument(
        "--study",
        action="append",
        default=[],
        metavar="PAPER/STUDY",
        help="train only runs of this study, e.g. hist/labels; may be repeated",
    )
    queue.add_argument(
        "--gpu",
        action="store_true",
        help="train only the studies for a GPU, with published models and data",
    )
    gpu = commands.add_parser("gpu", help="tests, benchmarks and studies for a machine with a GPU")
    gpu.add_argument(
        "--out",
        type=Path,
        default=Path("results/gpu"),
        metavar="DIR",
        help="folder of all output (results/gpu)",
    )
    gpu.add_argument(
        "--minutes", type=float, default=MINUTES, metavar="N", help="total minutes (40)"
    )
    again = commands.add_parser("check", help="make a sample of the stored runs again and compare")
    again.add_argument(
        "--scale", choices=SCALES[1:], default="small", help="size of the runs (small)"
    )
    again.add_argument("--sample", type=int, default=SAMPLE, metavar="N", help="runs per paper (2)")
    seals = commands.add_parser("seal", help="put the runs of finished studies into one table each")
    seals.add_argument(
        "studies",
        nargs="*",
        metavar="PAPER/STUDY",
        help="seal only these studies, e.g. hist/labels (all finished ones)",
    )
    for command in (queue, gpu, again):
        command.add_argument("--jobs", type=int, default=1, metavar="N", help="concurrent runs (1)")
    for command in (queue, gpu):
        command.add_argument("--data-dir", type=Path, metavar="PATH", help="folder of data sets")
    arguments = parser.parse_args(words)

    def act() -> int:
        if arguments.command == "claims":
            names = [arguments.paper] if arguments.paper else [*TITLES]
            by_paper = {name: assess(name) for name in names}
            assessed = [one for of_paper in by_paper.values() for one in of_paper]
            print(f"{table(assessed)}\n{totals(assessed)}")
            if arguments.paper is None:
                write(by_paper)
            return 0
        if arguments.command == "list":
            for name in [arguments.paper] if arguments.paper else TITLES:
                evidence = Evidence.of(papers()[name])
                print(f"{TITLES[name]}\n\n{figures_page.table(evidence)}")
            return 0
        if arguments.command == "pages":
            pages.write()
            return 0
        if arguments.command == "check":
            return int(check(arguments.scale, arguments.sample, arguments.jobs) > 0)
        if arguments.command == "seal":
            seal_all(arguments.studies)
            return 0
        if arguments.command == "gpu":
            common = arguments.minutes, arguments.data_dir, arguments.jobs
            return int(bool(run_gpu(arguments.out, *common)))
        into, scratch = arguments.into, arguments.scratch
        if into is not None and not into.is_dir():
            raise ConfigError(f"into is {into}: it is not a folder. Give the folder of the papers.")
        if arguments.gpu:
            if arguments.scale != "small":
                raise ConfigError(
                    f"scale is {arguments.scale}, but --gpu chooses it by study: leave one of "
                    "both out."
                )
            queued, absent = gpu_entries(into, scratch, arguments.data_dir, arguments.study)
            for line in absent:
                print(f"not run: {line}", file=sys.stderr)
        else:
            common = arguments.data_dir, arguments.study
            queued = entries(arguments.scale, into, scratch, *common)
        return int(bool(run_queue(queued, scratch, arguments.jobs)))

    return exit_code(act)


if __name__ == "__main__":
    sys.exit(main())
