"""What each choice of the crossed study buys, with the command that makes it."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from experiments.codesign.access import ACCESSES, NAMES
from experiments.codesign.crossed import (
    BUFFERED,
    COSTS,
    ROUNDS,
    SCHEDULES,
    TARGET,
    Line,
    lines,
)
from experiments.evidence import costs_by_seed
from experiments.hist.cells import network_label, schedule_label
from experiments.studies import Results
from wirelessfl.results import selection as names
from wirelessfl.results.costs import final_accuracy, markdown
from wirelessfl.results.intervals import Effect, difference, ratio

HIST, OPTIMIZED, HFEDAVG, FEDAVG = "HIST", "HIST, optimized masks", "HFedAvg", "FedAvg"
AIR = ("physical", "mmse")
FILES = {HIST: "cells.toml", OPTIMIZED: "cells.toml", HFEDAVG: "cells.toml", FEDAVG: "server.toml"}
"""Files of docs/guides/choosing.md with the settings that all runs share."""
VARIED = ("mask_sizes", "schedule", "requests", "buffer", "rounds", "eval_every")
"""Settings of a command besides the access; they precede those of its file."""


class Choice(NamedTuple):
    """A choice and its alternative, each with schedule, run and access.

    Args:
        question: when the choice arises.
        choice: what is chosen, and instead of what.
        before: the alternative.
        after: what is chosen.
    """

    question: str
    choice: str
    before: tuple[str, str, str]
    after: tuple[str, str, str]


SENDING = "Sending takes long"
WAITING = "Cells wait for the slowest cell"
PHASES = "Clients can be synchronised in phase"
CHOICES = (
    Choice(
        SENDING,
        "optimal bandwidth instead of equal time slots (HIST)",
        (ROUNDS, HIST, "tdma"),
        (ROUNDS, HIST, "optimal"),
    ),
    Choice(
        SENDING,
        "optimal instead of equal bandwidth (HIST)",
        (ROUNDS, HIST, "equal"),
        (ROUNDS, HIST, "optimal"),
    ),
    Choice(
        SENDING,
        "submodels (HIST) instead of full models (HFedAvg)",
        (ROUNDS, HFEDAVG, "optimal"),
        (ROUNDS, HIST, "optimal"),
    ),
    Choice(
        "Clients are far from one server",
        "cells (HFedAvg) instead of one server (FedAvg)",
        (ROUNDS, FEDAVG, "optimal"),
        (ROUNDS, HFEDAVG, "optimal"),
    ),
    Choice(
        WAITING,
        "latency-optimised instead of uniform sizes (HIST), equal time slots",
        (ROUNDS, HIST, "tdma"),
        (ROUNDS, OPTIMIZED, "tdma"),
    ),
    Choice(
        WAITING,
        "latency-optimised instead of uniform sizes (HIST), optimal bandwidth",
        (ROUNDS, HIST, "optimal"),
        (ROUNDS, OPTIMIZED, "optimal"),
    ),
    Choice(
        WAITING,
        "asynchronous cells instead of rounds (HIST)",
        (ROUNDS, HIST, "optimal"),
        (BUFFERED, HIST, "optimal"),
    ),
    Choice(
        WAITING,
        "asynchronous cells instead of rounds (HFedAvg)",
        (ROUNDS, HFEDAVG, "optimal"),
        (BUFFERED, HFEDAVG, "optimal"),
    ),
    Choice(
        "The server waits for the slowest client",
        "asynchronous clients instead of rounds (FedAvg)",
        (ROUNDS, FEDAVG, "equal"),
        (BUFFERED, FEDAVG, "equal"),
    ),
    Choice(
        PHASES,
        "AirComp instead of optimal bandwidth (HIST)",
        (ROUNDS, HIST, "optimal"),
        (ROUNDS, HIST, "physical"),
    ),
    Choice(
        PHASES,
        "AirComp instead of optimal bandwidth (HFedAvg)",
        (ROUNDS, HFEDAVG, "optimal"),
        (ROUNDS, HFEDAVG, "physical"),
    ),
    Choice(
        PHASES,
        "minimum MSE (`mmse`) instead of full weights (`physical`) (HIST)",
        (ROUNDS, HIST, "physical"),
        (ROUNDS, HIST, "mmse"),
    ),
    Choice(
        "All of these, without AirComp",
        "HIST with optimised sizes and bandwidth instead of HFedAvg with equal time slots",
        (ROUNDS, HFEDAVG, "tdma"),
        (ROUNDS, OPTIMIZED, "optimal"),
    ),
)


class Effects(NamedTuple):
    """What a choice buys.

    Args:
        choice: the choice.
        costs: costs of the alternative over those of the choice, in the order of ``COSTS``.
        points: gain of final accuracy, in percentage points.
        command: the command of the choice.
    """

    choice: Choice
    costs: tuple[Effect, ...]
    points: Effect
    command: str


def effects(lines: Sequence[Line]) -> list[Effects]:
    """All choices with runs of both sides."""
    by_key = {line.key: line for line in lines}
    made = []
    for one in CHOICES:
        before, after = by_key.get(one.before), by_key.get(one.after)
        if before is not None and after is not None:
            ratios = (
                ratio("", *(costs_by_seed(one.runs, TARGET, f) for one in (before, after)), 1.0)
                for f in COSTS
            )
            points = difference("", after.finals, before.finals, 0.0)
            made.append(Effects(one, tuple(ratios), points, command(after)))
    return made


def table(results: Results) -> str:
    """A row per choice: costs of the alternative over those of the choice, and its command."""
    rows = []
    for one in effects(lines(results)):
        cells = one.choice.question, one.choice.choice, *map(str, one.costs)
        rows.append([*cells, str(one.points), f"`{one.command}`"])
    return markdown(["when", *_head(), "command"], rows)


def short(results: Results) -> str:
    """The table without questions, commands and numbers of seeds."""
    rows = [
        [one.choice.choice, *map(_plain, (*one.costs, one.points))]
        for one in effects(lines(results))
    ]
    return markdown(_head(), rows)


def _head() -> list[str]:
    costs = [f"{unit} to {100 * TARGET:g} %, times less" for unit in COSTS.values()]
    return ["choice", *costs, "final accuracy (pp)"]


def _plain(effect: Effect) -> str:
    """Without the number of seeds, which the line below the table has."""
    return re.sub(r",? ?\d+ seeds?\)", ")", str(effect)).replace(" ()", "")


def numbers(lines: Sequence[Line]) -> dict[str, str]:
    """The best combinations over the seeds that all have, and how many choices save time."""
    common = set.intersection(*({run.seed for run in line.runs} for line in lines))
    every = [line.of_seeds(common) for line in lines]
    whole = [line for line in every if len(line.costs("sim_seconds")) == len(common)]
    digital = [line for line in whole if line.access not in AIR]
    best = max(every, key=lambda line: statistics.mean(line.finals.values()))
    made = effects(lines)
    certain = sum(one.costs[0].interval[0] > 0 for one in made)  # beyond the 95 % interval
    return {
        "combinations": f"{len(whole)} of {len(every)}",
        "soonest": _best(whole, "sim_seconds"),
        "soonest without AirComp": _best(digital, "sim_seconds"),
        "fewest joules": _best(whole, "joules"),
        "least traffic": _best(whole, "uplink_mib"),
        "most accurate": _named(best),
        "highest accuracy": f"{statistics.mean(best.finals.values()):.1f}",
        "certain": f"{certain} of {len(made)}",
    }


def _best(lines: Sequence[Line], field: str) -> str:
    """The combination with the lowest mean cost, and its costs."""
    best = min(lines, key=lambda line: statistics.mean(line.costs(field)))
    means = (f"{statistics.mean(best.costs(name)):.3g} {unit}" for name, unit in COSTS.items())
    return f"{_named(best)} ({', '.join(means)})"


def _named(line: Line) -> str:
    return f"{line.run} over {NAMES[line.access]}, {SCHEDULES[line.schedule]}"


def command(line: Line) -> str:
    """The command of a combination, with the files of docs/guides/choosing.md."""
    flags = {k: line.case[k] for k in VARIED if line.case[k] is not None}
    if line.schedule == ROUNDS:  # those of the file
        flags = {k: v for k, v in flags.items() if k == "mask_sizes"}
    flags |= {**ACCESSES[line.access], "lr": line.case["lr"]}  # files name no algorithm
    words = [f"--{name.replace('_', '-')} {value}" for name, value in flags.items()]
    file = FILES[line.run]
    return " ".join(["wirelessfl run", line.case["algorithm"], "--config", file, *words])


def cells(results: Results) -> str:
    """Asynchronous cells against synchronous rounds of HIST's study, for equal simulated time."""
    head = ["algorithm", "slow cells", "cells per aggregation"]
    head += [f"s to {100 * TARGET:g} %, times less", "final accuracy (pp)", "seeds"]
    rows = []
    for case in results.where():
        alike = {"algorithm": case["algorithm"], "slowdown": case["slowdown"]}
        rounds = results.where(**alike, buffer=None)
        if case["buffer"] is None or not rounds:
            continue
        before, after = (
            costs_by_seed(results.of(one), TARGET, "sim_seconds") for one in (rounds[0], case)
        )
        ends = [{r.seed: final_accuracy(r.rows) for r in results.of(c)} for c in (case, rounds[0])]
        points = difference("", *ends, 0.0)
        rows.append(
            [
                names.NAMES[case["algorithm"]],
                network_label(case["slowdown"]),
                schedule_label(case).removeprefix("B = "),
                _plain(ratio("", before, after, 1.0)),
                _plain(points),
                str(len(points.values)),
            ]
        )
    return markdown(head, rows) if rows else "*Not run yet.*\n"
