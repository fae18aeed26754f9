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
from pathlib import Path

from experiments.dynamic_clients import costs as measured
from experiments.dynamic_clients import figures, gains, radio, sessions, tables
from experiments.dynamic_clients.methods import complete
from experiments.paper import Experiment, Paper

TRANSITIONS = {5: (2, 4), 8: (1, 2, 3), 9: (1, 2, 3), 10: (1, 2, 3), 11: (1, 2, 3)}
"""Transitions shown in these tables; the others show the first two."""


def _table(number: int) -> Experiment:
    return Experiment(f"table{number}", tables.comparison(number, TRANSITIONS.get(number, (1, 2))))


EXPERIMENTS = {
    "gains": Experiment(("table3", "mlp", "moon"), gains.table, gains.points),
    "lasting": Experiment("table3", figures.table, figures.lasting),
    **{f"table{number}": _table(number) for number in range(1, 12)},
    "table12": Experiment("table12", tables.variants(12, None)),
    "table13": Experiment("table13", tables.variants(13)),
    "table14": Experiment("table14", tables.variants(14)),
    "fig2": Experiment(
        "fig2", tables.comparison(None), sessions.curves("fig2", "algorithm", ["dataset", "model"])
    ),
    "fig3": Experiment(
        "table8",
        tables.comparison(8, TRANSITIONS[8]),
        sessions.curves("fig3", "algorithm", ["dataset", "model", "split"]),
    ),
    "fig4": Experiment(
        "fig4",
        tables.comparison(None, TRANSITIONS[9]),
        sessions.curves("fig4", "split", ["dataset", "model", "algorithm"]),
    ),
    "lenet5": Experiment("lenet5", tables.comparison(None, (1, 2, 3))),
    "overlap": Experiment("overlap", tables.comparison(None)),
    "ablations": Experiment("ablations", tables.variants(None)),
    "radio": Experiment("radio", radio.table, radio.points),
    "mlp": Experiment("mlp", tables.comparison(3)),
    "scaffold": Experiment("scaffold", tables.comparison(None)),
    "pilot": Experiment("pilot", tables.variants(None)),
    "moon": Experiment("moon", tables.comparison(None)),
    "momentum": Experiment("momentum", tables.comparison(3), short=tables.momenta),
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
