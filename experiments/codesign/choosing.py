"""What each choice of the crossed study buys, with the command that makes it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
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
from experiments.report import LISTED, markdown
from experiments.studies import Results
from wirelessfl.results.intervals import Reached, difference, ratio

HIST, OPTIMIZED, HFEDAVG, FEDAVG = "HIST", "HIST, optimized masks", "HFedAvg", "FedAvg"
AIR = ("physical", "mmse")
FILES = {HIST: "cells.toml", OPTIMIZED: "cells.toml", HFEDAVG: "cells.toml", FEDAVG: "server.toml"}
"""Files of docs/choosing.md with the settings that all runs share."""
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
        "optimal bands instead of equal slots",
        (ROUNDS, HIST, "tdma"),
        (ROUNDS, HIST, "optimal"),
    ),
    Choice(
        SENDING,
        "optimal instead of equal bands",
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
        "masks that fit the cells instead of uniform ones, equal slots",
        (ROUNDS, HIST, "tdma"),
        (ROUNDS, OPTIMIZED, "tdma"),
    ),
    Choice(
        WAITING,
        "masks that fit the cells instead of uniform ones, optimal bands",
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
        "sums over the air instead of optimal bands (HIST)",
        (ROUNDS, HIST, "optimal"),
        (ROUNDS, HIST, "physical"),
    ),
    Choice(
        PHASES,
        "sums over the air instead of optimal bands (HFedAvg)",
        (ROUNDS, HFEDAVG, "optimal"),
        (ROUNDS, HFEDAVG, "physical"),
    ),
    Choice(
        PHASES,
        "least error (mmse) instead of full weights (physical)",
        (ROUNDS, HIST, "physical"),
        (ROUNDS, HIST, "mmse"),
    ),
    Choice(
        "All of these, without sums over the air",
        "HIST with masks that fit and optimal bands instead of HFedAvg with equal slots",
        (ROUNDS, HFEDAVG, "tdma"),
        (ROUNDS, OPTIMIZED, "optimal"),
    ),
)


def table(results: Results) -> str:
    """Findings, and a row per choice: costs of the alternative over those of the choice."""
    found = {line.key: line for line in lines(results)}
    head = ["when", "choice"]
    head += [f"{unit} to {100 * TARGET:g} %, times less" for unit in COSTS.values()]
    head += ["final accuracy (points)", "command"]
    rows = []
    for one in CHOICES:
        before, after = found.get(one.before), found.get(one.after)
        if before is None or after is None:
            continue
        ratios = (str(ratio("", costs(before, field), costs(after, field), 1.0)) for field in COSTS)
        points = difference("", after.finals, before.finals, 0.0)
        rows.append([one.question, one.choice, *ratios, str(points), f"`{command(after)}`"])
    said = "\n\n".join(findings(list(found.values())))
    return f"{said}\n\n{markdown(head, rows)}" if rows else said + "\n"


def costs(line: Line, field: str) -> dict[int, Reached]:
    """The costs of the target by seed."""
    return {run.seed: Reached.of(run.rows, TARGET, field) for run in line.runs}


def findings(found: Sequence[Line]) -> Iterator[str]:
    """Sentences on the best combinations, over the seeds that all of them have."""
    seeds_of = [{run.seed for run in line.runs} for line in found]
    common = set.intersection(*seeds_of) if seeds_of else set()
    if not common:
        yield "No seed has runs of all combinations."
        return
    every = [line.of_seeds(common) for line in found]
    most = len(common)
    whole = [line for line in every if len(line.costs("sim_seconds")) == most]
    seeds = f"{most} seed{'s' * (most != 1)}"
    if not whole:
        yield f"No combination reaches {100 * TARGET:g} % with all of {seeds}."
        return
    yield (
        f"{len(whole)} of {len(every)} combinations with {seeds} reach {100 * TARGET:g} % with all "
        f"of them. The soonest is {_best(whole, 'sim_seconds')}. Without sums over the air it is "
        f"{_best([one for one in whole if one.access not in AIR], 'sim_seconds')}. The one with "
        f"the fewest joules is {_best(whole, 'joules')}; with the fewest MiB, "
        f"{_best(whole, 'uplink_mib')}."
    )
    best = max(every, key=lambda line: statistics.mean(line.finals.values()))
    accuracy = statistics.mean(best.finals.values())
    yield f"The highest final accuracy has {_said(best)}: {accuracy:.1f} %."
    short = [_said(line) for line in every if line not in whole]
    if short:
        first, more = short[:LISTED], len(short) - LISTED
        rest = f"; and {more} more" if more > 0 else ""
        yield f"Not all seeds reach {100 * TARGET:g} % with: {'; '.join(first)}{rest}."


def _best(found: Sequence[Line], field: str) -> str:
    """The combination with the lowest mean cost, and its costs."""
    if not found:
        return "none"
    best = min(found, key=lambda line: statistics.mean(line.costs(field)))
    means = (f"{statistics.mean(best.costs(name)):.3g} {unit}" for name, unit in COSTS.items())
    return f"{_said(best)} ({', '.join(means)})"


def _said(line: Line) -> str:
    return f"{line.run} over {NAMES[line.access]} in {_schedule(line.schedule)}"


def _schedule(name: str) -> str:
    return "rounds" if name == ROUNDS else f"{SCHEDULES[name]} merges"


def command(line: Line) -> str:
    """The command of a combination, with the files of docs/choosing.md."""
    flags = {k: line.case[k] for k in VARIED if line.case[k] is not None}
    if line.schedule == ROUNDS:  # those of the file
        flags = {k: v for k, v in flags.items() if k == "mask_sizes"}
    flags |= {**ACCESSES[line.access], "lr": line.case["lr"]}  # files name no algorithm
    words = [f"--{name.replace('_', '-')} {value}" for name, value in flags.items()]
    file = FILES[line.run]
    return " ".join(["wirelessfl run", line.case["algorithm"], "--config", file, *words])
