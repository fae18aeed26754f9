"""``python -m experiments.dynamic_clients NAME --scale {smoke,small,paper}``.

Tables 1 to 14 of the dynamic-clients paper; ``gains`` (of Table 3, with an MLP and MOON) and
``lasting`` (for how many rounds); the curves of Figures 2 to 4; and additional studies:
``lenet5`` (a deeper model, like the CNN that the paper uses on SVHN), ``overlap`` (0.6 on the data
sets of Table 3), ``mlp`` (Table 3 with an MLP), ``scaffold`` (its step size and momentum),
``pilot`` (a random pilot of LeNet-5), ``moon``, ``momentum`` (of FedACG's server in a new session),
``ablations`` and ``radio``. ``costs`` measures CPU time and memory.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from experiments.dynamic_clients import costs as measured
from experiments.dynamic_clients import gains, lasting, radio, sessions, tables
from experiments.dynamic_clients.methods import complete
from experiments.paper import Experiment, Paper

TRANSITIONS = {5: (2, 4), 8: (1, 2, 3), 9: (1, 2, 3), 10: (1, 2, 3), 11: (1, 2, 3)}
"""Transitions shown in these tables; the others show the first two."""


def _table(number: int) -> Experiment:
    numbers = TRANSITIONS.get(number, (1, 2))
    return Experiment(f"table{number}", partial(tables.comparison, table=number, numbers=numbers))


EXPERIMENTS = {
    "gains": Experiment(("table3", "mlp", "moon"), gains.table, gains.points),
    "lasting": Experiment("table3", lasting.table, lasting.points),
    **{f"table{number}": _table(number) for number in range(1, 12)},
    "table12": Experiment("table12", partial(tables.variants, table=12, numbers=None)),
    "table13": Experiment("table13", partial(tables.variants, table=13)),
    "table14": Experiment("table14", partial(tables.variants, table=14)),
    "fig2": Experiment(
        "fig2",
        tables.comparison,
        partial(sessions.curves, columns="algorithm", lines=["dataset", "model"]),
    ),
    "fig3": Experiment(
        "table8",
        partial(tables.comparison, table=8, numbers=TRANSITIONS[8]),
        partial(sessions.curves, columns="algorithm", lines=["dataset", "model", "split"]),
    ),
    "fig4": Experiment(
        "fig4",
        partial(tables.comparison, numbers=TRANSITIONS[9]),
        partial(sessions.curves, columns="split", lines=["dataset", "model", "algorithm"]),
    ),
    "lenet5": Experiment("lenet5", partial(tables.comparison, numbers=(1, 2, 3))),
    "overlap": Experiment("overlap", tables.comparison),
    "ablations": Experiment("ablations", tables.variants),
    "radio": Experiment("radio", radio.table, radio.points),
    "mlp": Experiment("mlp", partial(tables.comparison, table=3)),
    "scaffold": Experiment("scaffold", tables.comparison),
    "pilot": Experiment("pilot", tables.variants),
    "moon": Experiment("moon", tables.comparison),
    "momentum": Experiment("momentum", partial(tables.comparison, table=3), short=tables.momenta),
}
PAPER = Paper(
    "dynamic_clients",
    Path(__file__).with_name("settings"),
    EXPERIMENTS,
    complete,
    {"costs": lambda: measured.table(measured.load())},
)


def costs(arguments: argparse.Namespace) -> None:
    """CPU time and memory, measured in processes of their own."""
    measured.costs(arguments, PAPER.study("costs", arguments.scale, arguments.data_dir))


if __name__ == "__main__":
    sys.exit(PAPER.main(others={"costs": costs}))
