"""``python -m experiments.fadamgc NAME --scale {smoke,small,paper}``: FAdamGC's figures and tables.

``search`` searches step sizes and prints them for ``settings/rates.toml``; ``seconds`` compares
the run-time model with the published seconds per round.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from experiments.comparison import against, table
from experiments.fadamgc import figures, tables
from experiments.fadamgc.costs import TESTS
from experiments.fadamgc.methods import SETTINGS, complete
from experiments.fadamgc.search import StepSearch, rates_lines, search_table
from experiments.fadamgc.seconds import image_table, language_table, share_table
from experiments.paper import Experiment, Paper, show

HELD = 0.72
"""A target that FA-NT reaches with S = 50 within the rounds of the study `trackers`."""

EXPERIMENTS = {
    "table2": Experiment("table2", tables.comparison, figures.of_methods),
    "fig2": Experiment(
        ("table2", "news"),
        partial(tables.curve_values, setting="dataset"),
        partial(figures.curves, setting="dataset"),
    ),
    "table3": Experiment("table3", tables.without_memory),
    "fig3": Experiment(
        "fig3",
        partial(tables.against, setting="alpha"),
        partial(figures.costs, setting="alpha", label="Dirichlet parameter"),
    ),
    **{
        name: Experiment(
            name,
            partial(tables.against, setting="tracking_clients"),
            partial(figures.costs, setting="tracking_clients", label="tracking clients per round"),
        )
        for name in ("fig4", "fig9")
    },
    **{
        name: Experiment(
            name,
            partial(tables.against, setting="clients_per_round"),
            partial(figures.curves, setting="clients_per_round"),
        )
        for name in ("fig5", "fig6", "fig7", "fig8")
    },
    "adaptive": Experiment(
        "adaptive", partial(table, target=0.75), partial(figures.collapses, target=0.75)
    ),
    "memory": Experiment(
        "memory",
        partial(table, target=0.75, tests=TESTS),
        partial(
            against, setting="lr", panel="algorithm", quantity="round", target=0.75, tests=TESTS
        ),
        partial(table, target=0.75, best="lr", tests=TESTS),
    ),
    "cnn": Experiment("cnn", partial(table, target=0.75)),
    "cifar": Experiment("cifar", partial(table, target=0.5, quantities=("round", "sim_seconds"))),
    "news": Experiment(
        "news",
        partial(table, target=0.5),
        partial(figures.of_methods, quantities=("round",), target=0.5, searched=True),
    ),
    "k60": Experiment("k60", tables.searched),
    "trackers": Experiment(
        "trackers",
        partial(tables.against, setting="tracking_clients", tests=TESTS, goals=(HELD, None)),
        partial(
            figures.costs,
            setting="tracking_clients",
            label="tracking clients per round (S = 50)",
            tests=TESTS,
            target=HELD,
        ),
    ),
}
PAPER = Paper("fadamgc", SETTINGS, EXPERIMENTS, complete)


def search(arguments: argparse.Namespace) -> None:
    """Search step sizes, and print the lines for ``settings/rates.toml``."""
    grid = StepSearch.load(arguments.scale, arguments.data_dir)
    store = PAPER.store(arguments.scale, arguments.out, arguments.rows)
    if arguments.make:
        grid.run(store, jobs=arguments.jobs, ray=arguments.ray)
    show("search", search_table(grid, store), arguments.out)
    print(rates_lines(grid, store))


def seconds(arguments: argparse.Namespace) -> None:
    """Print and store the seconds per round of the run-time model."""
    show("seconds", f"{image_table()}\n{language_table()}\n{share_table()}", arguments.out)


if __name__ == "__main__":
    sys.exit(PAPER.main(others={"search": search, "seconds": seconds}))
