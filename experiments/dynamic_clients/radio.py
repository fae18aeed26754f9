"""Cost and benefit of trial rounds over the air: seconds and MiB to a common accuracy.

The paper counts extra rounds; here they also take simulated seconds, over TDMA or over the air.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments.dynamic_clients.measures import session_of
from experiments.dynamic_clients.methods import SHOWN
from experiments.look import save, seeds_text
from experiments.report import markdown, spread
from experiments.studies import Case, Results
from wirelessfl.divergence import counted, has_diverged
from wirelessfl.results.names import DATA, NAMES
from wirelessfl.results.panels import draw_points, grid, legend, room, same_limits

NUMBERS = (1, 2, 3)
BELOW = 0.02
"""Difference between the lowest final accuracy of the warm starts in a session and the target."""
APART = 0.15
"""Distance of two warm starts at the same transition."""
UPLINKS = {"tdma": "TDMA", "aircomp": "AirComp"}
Rows = list[dict[str, Any]]


class Cost(NamedTuple):
    """Cost from the end of a session until the accuracy of the next one reaches a target.

    Args:
        rounds: training rounds, without trial rounds.
        seconds: simulated seconds, including trial rounds.
        mib: uplink plus downlink, mean over the registered clients, including trial rounds.
    """

    rounds: int
    seconds: float
    mib: float


def cost(rows: Rows, session: int, target: float) -> Cost | None:
    """Cost of a session until it reaches ``target``, in [0, 1]; None if it does not."""
    before = next(row for row in reversed(rows) if row["session"] == session - 1)
    reaching = (
        row
        for row in rows
        if row["session"] == session and not has_diverged(row) and row["accuracy"] >= target
    )
    hit = next(reaching, None)
    if hit is None:
        return None
    mib = (hit[f"{way}_mib"] - before[f"{way}_mib"] for way in ("uplink", "downlink"))
    seconds = hit["sim_seconds"] - before["sim_seconds"]
    return Cost(hit["session_round"], seconds, sum(mib))


def common_target(runs: Sequence[Rows], session: int) -> float:
    """The lowest final accuracy of the runs in this session, minus ``BELOW``.

    Runs that have diverged are ignored.
    """
    ends = (next(r for r in reversed(rows) if r["session"] == session) for rows in runs)
    return min((counted(row) for row in ends if not has_diverged(row)), default=0.0) - BELOW


def groups(results: Results) -> list[list[Case]]:
    """Groups of cases that differ only in their warm start."""
    found: dict[tuple[Any, ...], list[Case]] = {}
    for case in results.where():
        found.setdefault((case["dataset"], case["algorithm"], case["uplink"]), []).append(case)
    return list(found.values())


def costs(results: Results, cases: Sequence[Case], number: int) -> dict[str, list[Cost | None]]:
    """Costs of a transition by warm start, one per seed that all warm starts share."""
    session = session_of(number)
    by_start = {case["warm_start"]: results.rows(case) for case in cases}
    seeds = list(zip(*by_start.values(), strict=False))
    targets = [common_target(runs, session) for runs in seeds]
    return {
        start: [cost(rows, session, goal) for rows, goal in zip(runs, targets, strict=False)]
        for start, runs in by_start.items()
    }


def table(results: Results) -> str:
    """Rounds, simulated seconds and MiB to a common accuracy, and the share of trial rounds."""
    head = ["data, algorithm", "uplink", "transition", "target (%)", "warm start", "seeds"]
    head += ["rounds", "seconds", "MiB per client"]
    head += ["seconds of trial rounds", "MiB of trial rounds"]
    rows = []
    for cases in groups(results):
        for number in NUMBERS:
            session = session_of(number)
            seeds = zip(*(results.rows(case) for case in cases), strict=False)
            goals = [100 * common_target(runs, session) for runs in seeds]
            found = costs(results, cases, number)
            for case in cases:
                reached = [one for one in found[case["warm_start"]] if one is not None]
                each = [_extra(run, session) for run in results.rows(case)]
                extra = [statistics.mean(values) for values in zip(*each, strict=True)]
                rows.append(
                    [
                        f"{DATA[case['dataset']]}, {NAMES[case['algorithm']]}",
                        UPLINKS[case["uplink"]],
                        str(number),
                        spread(goals),
                        SHOWN[case["warm_start"]],
                        f"{len(reached)} of {len(goals)}",
                        spread([one.rounds for one in reached]),
                        *(spread([one[i] for one in reached], places=3) for i in (1, 2)),
                        f"{extra[0]:.3f}",
                        f"{extra[1]:.3f}",
                    ]
                )
    return (
        "Cost from the end of the previous session to the target, two points below the lowest "
        "final accuracy of any warm start in the session. Seconds and MiB include the trial rounds "
        "at its start, which are also given separately.\n\n" + markdown(head, rows)
    )


def _extra(rows: Rows, session: int) -> tuple[float, float]:
    """Seconds and MiB of the trial rounds at a session's start."""
    before, at = (
        next(row for row in reversed(rows) if row["session"] == number)
        for number in (session - 1, session)
    )
    return (
        at["extra_seconds"] - before["extra_seconds"],
        at["extra_mib"] - before["extra_mib"],
    )


def points(results: Results, out: Path) -> list[Path]:
    """Simulated seconds to the common accuracy after each transition, one panel per uplink.

    Both panels have the same logarithmic axis, because the uplinks differ tenfold.
    """
    drawn = []
    pairs = dict.fromkeys((c["dataset"], c["algorithm"]) for c in results.where())
    for place, (dataset, algorithm) in enumerate(pairs):
        both = [
            cases
            for cases in groups(results)
            if (cases[0]["dataset"], cases[0]["algorithm"]) == (dataset, algorithm)
        ]
        figure, axes = grid(len(both))
        for panel, cases in zip(axes, both, strict=True):
            by_start: dict[str, dict[float, list[float | None]]] = {}
            for number in NUMBERS:
                for start, found in costs(results, cases, number).items():
                    seconds = [None if one is None else one.seconds for one in found]
                    by_start.setdefault(start, {})[float(number)] = seconds
            panel.set_yscale("log")
            for rank, (start, seeds) in enumerate(by_start.items()):
                shift = APART * (rank - (len(by_start) - 1) / 2)
                draw_points(panel, seeds, SHOWN[start], rank, line=False, shift=shift)
            panel.set_xlim(min(NUMBERS) - 0.5, max(NUMBERS) + 0.5)
            panel.set_xticks(NUMBERS)
            panel.set_xlabel("transition")
            panel.set_ylabel("simulated time to target (s)")
            panel.set_title(UPLINKS[cases[0]["uplink"]])
        same_limits(axes)
        for panel in axes:
            room(panel)
        shown = [case for cases in both for case in cases]
        target = f"target: {100 * BELOW:g} points below the lowest final accuracy"
        name = f"{DATA[dataset]}, {NAMES[algorithm]}"
        legend(figure, axes, name, target, seeds_text(results, shown))
        drawn += save(figure, results, out / (f"radio-{dataset}" if place else "radio"))
    return drawn
