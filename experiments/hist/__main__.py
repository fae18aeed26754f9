"""``python -m experiments.hist NAME --scale {smoke,small}``: evidence for the HIST paper."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from experiments.hist.landmark import landmark

EXPERIMENTS = {"landmark": landmark}


def main(words: Sequence[str] | None = None) -> None:
    """Run one experiment, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m experiments.hist", description=__doc__)
    parser.add_argument("name", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--scale", choices=["smoke", "small"], default="small")
    parser.add_argument("--data-dir", type=Path, metavar="PATH", help="folder of the data sets")
    parser.add_argument(
        "--out", type=Path, default=Path("results/hist"), metavar="DIR", help="tables and figures"
    )
    arguments = parser.parse_args(words)
    for name, experiment in EXPERIMENTS.items():
        if arguments.name in (name, "all"):
            experiment(arguments.scale, arguments.out, arguments.data_dir)


if __name__ == "__main__":
    main()
