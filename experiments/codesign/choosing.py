"""What each choice of the crossed study buys, with the command that makes it."""

from __future__ import annotations

import re
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
from experiments.evidence import costs_by_seed
from experiments.hist.cells import network_label, schedule_label
from experiments.missing import LISTED
from experiments.studies import Results
from wirelessfl.results import names
from wirelessfl.results.intervals import Effect, difference, ratio
from wirelessfl.results.report import markdown
from wirelessfl.results.seeds import final_accuracy

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


def effects(found: Sequence[Line]) -> list[Effects]:
    """All choices with runs of both sides."""
    by_key = {line.key: line for line in found}
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
        told = one.choice.question, one.choice.choice, *map(str, one.costs)
        rows.append([*told, str(one.points), f"`{one.command}`"])
    return markdown(["when", *_head(), "command"], rows)


def short(results: Results) -> str:
    """Findings, and the table without questions, commands and numbers of seeds."""
    found = lines(results)
    made = effects(found)
    rows = [[one.choice.choice, *map(_plain, (*one.costs, one.points))] for one in made]
    said = "\n\n".join([*findings(found), *_certain(made)])
    return f"{said}\n\n{markdown(_head(), rows)}" if rows else said + "\n"


def _head() -> list[str]:
    costs = [f"{unit} to {100 * TARGET:g} %, times less" for unit in COSTS.values()]
    return ["choice", *costs, "final accuracy (pp)"]


def _plain(effect: Effect) -> str:
    """Without the number of seeds, which the line below the table has."""
    return re.sub(r",? ?\d+ seeds?\)", ")", str(effect)).replace(" ()", "")


def _certain(made: Sequence[Effects]) -> Iterator[str]:
    """Which choices save time beyond the interval over the seeds."""
    sure = [one.choice.choice for one in made if one.costs[0].interval[0] > 0]
    if made:
        named = "; ".join(sure) or "none"
        yield (
            f"Beyond the 95 % interval, {len(sure)} of {len(made)} choices save time: {named}. For "
            "the others, the interval over these seeds includes no gain."
        )


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
        f"{len(whole)} of {len(every)} combinations reach {100 * TARGET:g} % with all of {seeds}. "
        f"In the mean over the seeds, the soonest is {_best(whole, 'sim_seconds')}. Without "
        f"AirComp it is {_best([one for one in whole if one.access not in AIR], 'sim_seconds')}. "
        f"{_best(whole, 'joules')} needs the fewest joules, and "
        f"{_best(whole, 'uplink_mib')} the least traffic."
    )
    best = max(every, key=lambda line: statistics.mean(line.finals.values()))
    accuracy = statistics.mean(best.finals.values())
    yield f"{_said(best)} has the highest mean final accuracy, {accuracy:.1f} %."
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
    return f"{line.run} over {NAMES[line.access]}, {SCHEDULES[line.schedule]}"


def command(line: Line) -> str:
    """The command of a combination, with the files of docs/choosing.md."""
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
