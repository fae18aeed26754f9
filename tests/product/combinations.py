"""Every algorithm with every schedule and uplink, with and without sessions and assigners."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.gate.configurations import ROUNDED
from wirelessfl import Config
from wirelessfl.algorithms import HFedAvg, algorithm_classes
from wirelessfl.base.errors import ConfigError
from wirelessfl.config.choices import KINDS

SMALL: dict[str, Any] = {
    "clients": 4,
    "rounds": 2,
    "local_steps": 2,
    "batch_size": 8,
    "hidden": (8,),
    "eval_every": 1,
    "step_seconds": 0.01,
    "checkpoint_seconds": 100.0,
    # Fixed, so that runs need not choose them.
    "chunk": 4,
    "replay": "off",
    "threads": 1,
    "workers": 1,
    "device": "cpu",
}
CELLS = {"cells": 2, "edge_rounds": 2, "batch_size": 8}
UNDER: dict[str, dict[str, Any]] = {
    "rounds": {},
    "buffered": {"requests": 4, "buffer": 2},
    "simultaneous": {"first": 2},
}
"""Settings of each schedule for four clients."""
SESSIONS = {
    "sessions": 2,
    "presence": "arrivals",
    "presence_unit": "rounds",
    "arrival_rate": 1.0,
    "mean_stay": 8.0,
    "initially_present": 4,
}


MOVES = {
    "layout": "disc",
    "mobility": "waypoint",
    "speed_kmh": 30.0,
    "doppler_hz": 0.5,
    "doppler_model": "ar1",
}
SELECTIVE = {"delay_spread_ns": 100.0, "delay_profile": "tdl-a", "subcarriers": 4}
STAYS = Path(__file__).with_name("stays.csv")
"""Client 1 leaves soon, and client 3 joins late."""
WATTS = Path(__file__).with_name("watts.csv")
"""Interference while each of four clients sends, in two blocks."""
BATTERIES = {"battery_joules": (0.005, 0.01), "recharge": "constant", "recharge_watts": 0.05}
"""Batteries of some rounds, which are soon charged."""
FIELDS = ("algorithm", "schedule", "uplink", "assigner")
ASSIGNERS = ("covered", "partition")
"""An assigner for clients, and one for cells."""
DEADLINE = 0.015
"""Seconds in which clients train a part of the model, but not all of it."""
WITHIN_DEADLINE = ("fedavg", "hfedavg")
"""An algorithm without cells, and one with cells."""

VOTES: dict[str | None, dict[str, Any]] = {
    "majority": {"convention": "majority"},
    "one-bit": {"convention": "one-bit", "time_offset": 0.3, "elements_per_symbol": 2},
}
"""Settings of uplink ``aircomp`` by convention in which clients send signs."""


@dataclass(frozen=True)
class Combination:
    """One algorithm, schedule and uplink, with or without sessions and an assigner.

    Args:
        algorithm: name of the algorithm.
        schedule: name of the schedule.
        uplink: name of the uplink.
        sessions: whether clients join and leave.
        assigner: name of the assigner; None for that of the algorithm, or full models.
        compression: name of the downlink compression; every combination works with each.
        sent: name of the uplink compression, with error feedback.
        deadline: seconds that limit the submodels of clients; None for those of capacities.
        pilots: whether clients send pilots and hear interference in watts, with a radio channel.
        votes: convention of ``aircomp`` in which clients send signs; None for sums.
        moves: whether clients move, where uploads have common blocks of a radio channel, which
            differs over the band where rates are sums over it; and from cell to cell in synchronous
            rounds.
        devices: devices of the clients; None for clocks. Every combination works with each.
        limited: whether rates are those of modulation and coding, clients come and go, and have
            batteries, where each of these fits.
    """

    algorithm: str
    schedule: str
    uplink: str
    sessions: bool = False
    assigner: str | None = None
    compression: str = "none"
    sent: str = "none"
    deadline: float | None = None
    pilots: bool = False
    votes: str | None = None
    moves: bool = False
    devices: str | None = None
    limited: bool = False

    def config(self, out: Path | None = None) -> Config:
        """The configuration of a run with two merges.

        Args:
            out: folder of the run.

        Raises:
            ConfigError: the combination is invalid.
        """
        cells = issubclass(algorithm_classes()[self.algorithm], HFedAvg)
        under = UNDER.get(self.schedule, {})
        if self.devices is not None:  # which replace the seconds of a step
            under = under | {"devices": self.devices, "step_seconds": None}
        if cells:  # each cell is a request
            under = {key: value for key, value in under.items() if key != "requests"}
        return Config.from_flags(
            self.algorithm,
            schedule=self.schedule,
            uplink=self.uplink,
            downlink_compression=self.compression,
            uplink_compression=self.sent,
            **(SMALL | under | (CELLS if cells else {}) | (SESSIONS if self.sessions else {})),
            **({} if self.assigner is None else {"assigner": self.assigner}),
            **({} if out is None else {"out": out}),
            **({} if self.sent == "none" else {"error_feedback": True}),
            **({"precision": ROUNDED} if self.pilots else {}),
            **({"budget": "deadline", "deadline": self.deadline} if self.deadline else {}),
            **({"pilot_symbols": 8} if self.pilots and self.uplink != "fixed" else {}),
            **({"interference_watts": self._watts} if self.pilots and self._common_blocks else {}),
            **VOTES.get(self.votes, {}),
            **(self._limits(cells=cells) if self.limited else {}),
            **(MOVES if self.moves and self._common_blocks else {}),
            **(SELECTIVE if self.moves and self._sums_bands and self._common_blocks else {}),
            **({"handover": "strongest"} if self._hands_over and cells else {}),
            **({"power_loading": "water-filling"} if self._fills and self._common_blocks else {}),
        )

    @property
    def _sums_bands(self) -> bool:
        """Whether rates are sums over the band, in rounds."""
        return self.uplink in ("tdma", "ofdma") and self.schedule != "simultaneous"

    def _limits(self, *, cells: bool) -> dict[str, Any]:
        """Modulation and coding, availability and batteries, where they fit."""
        sums = self.uplink == "aircomp" and self.schedule == "buffered" and not cells
        comes = not self.sessions and self.schedule != "simultaneous" and not sums
        charged = not self.sessions and (cells or self.schedule == "rounds")
        return {
            **({"rates": "mcs"} if self.uplink in ("tdma", "ofdma") else {}),
            **({"availability_trace": STAYS} if comes else {}),
            **(BATTERIES if charged else {}),
        }

    @property
    def _fills(self) -> bool:
        """Whether clients load their best subcarriers."""
        return self.moves and self._sums_bands and self.uplink == "tdma"

    @property
    def _watts(self) -> float | Path:
        """Interference: of clients, or over the air, where all are heard at once, of all cells."""
        return 1e-13 if self.uplink == "aircomp" else WATTS

    @property
    def _common_blocks(self) -> bool:
        """Whether uploads have common blocks of a radio channel."""
        cells = issubclass(algorithm_classes()[self.algorithm], HFedAvg)
        together = self.schedule == "simultaneous" and self.uplink == "aircomp"
        return self.uplink != "fixed" and (cells or self.schedule == "rounds" or together)

    @property
    def _hands_over(self) -> bool:
        """Whether clients change their cells, if there are cells in synchronous rounds."""
        return self.moves and self.uplink != "fixed" and self.schedule == "rounds"

    def refusal(self) -> str | None:
        """The reason why the combination is refused; None if it is valid."""
        return _refusal(self)

    @property
    def compressed(self) -> Combination:
        """The same with compression of models, and of their changes where it is not refused."""
        models = replace(self, compression="top-k", pilots=True, moves=True)
        both = replace(models, sent="sign")
        return models if both.refusal() is not None else both

    @property
    def pairs(self) -> frozenset[tuple[Any, ...]]:
        """All pairs of its choices."""
        choices = [
            ("algorithm", self.algorithm),
            ("schedule", self.schedule),
            ("uplink", self.uplink),
            ("sessions", self.sessions),
            ("assigner", self.assigner),
        ]
        return frozenset(itertools.combinations(choices, 2))


@cache
def _refusal(combination: Combination) -> str | None:
    """The reason for a refusal, cached because resolving settings takes milliseconds."""
    try:
        combination.config()
    except ConfigError as error:
        return str(error)
    return None


def combinations() -> list[Combination]:
    """All combinations."""
    kinds = [sorted(KINDS[kind].classes()) for kind in ("schedule", "uplink")]
    return [
        Combination(*choices)
        for choices in itertools.product(
            sorted(algorithm_classes()), *kinds, (False, True), (None, *ASSIGNERS)
        )
    ]


def by_seconds() -> list[Combination]:
    """Submodels of clients within a deadline: each schedule and uplink, without and with cells."""
    return [
        replace(combination, deadline=DEADLINE)
        for combination in combinations()
        if combination.algorithm in WITHIN_DEADLINE and combination.assigner == "covered"
    ]


def by_votes() -> list[Combination]:
    """Signs over the air: each valid combination with ``aircomp``, in either convention."""
    return [
        replace(combination, votes=votes)
        for combination in combinations()
        if combination.uplink == "aircomp" and combination.refusal() is None
        for votes in VOTES
    ]


def pairwise(valid: Iterable[Combination]) -> list[Combination]:
    """A subset of the valid combinations that covers every pair of compatible choices.

    Greedy: each step takes the combination that covers most missing pairs.
    """
    left = list(valid)
    missing = set().union(*(combination.pairs for combination in left))
    chosen: list[Combination] = []
    while missing:
        best = max(left, key=lambda combination: len(combination.pairs & missing))
        chosen.append(best)
        missing -= best.pairs
        left.remove(best)
    return chosen


def table(all_of_them: Sequence[Combination]) -> str:
    """The page with the valid combinations (the uplinks of each algorithm) and the refusals."""
    refused = {combination: combination.refusal() for combination in all_of_them}
    schedules = sorted(KINDS["schedule"].classes())
    columns = [(name, False) for name in schedules]
    columns.append(("rounds", True))
    runs: dict[tuple[str, ...], list[str]] = {}
    for assigner, algorithm in itertools.product((None, *ASSIGNERS), sorted(algorithm_classes())):
        row = [_uplinks(all_of_them, algorithm, assigner, *column) for column in columns]
        if set(row) != {"none"}:
            runs.setdefault((f"`{assigner}`" if assigner else "", *row), []).append(algorithm)
    within = [
        (f"`{name}`", *(_uplinks(by_seconds(), name, "covered", *column) for column in columns))
        for name in WITHIN_DEADLINE
    ]
    reasons: dict[str, list[Combination]] = {}
    for combination, reason in refused.items():
        if reason is not None:
            reasons.setdefault(_of_any(reason, combination), []).append(combination)
    headings = [f"`{name}`" + ", sessions" * sessions for name, sessions in columns]
    listed = [
        (*(_values(found, kind) for kind in FIELDS), reason)
        for reason, found in sorted(reasons.items(), key=lambda entry: -len(entry[1]))
    ]
    return PAGE.format(
        runs=sum(reason is None for reason in refused.values()),
        total=len(refused),
        table=_lines(
            ["algorithms", "assigner", *headings],
            [(_names(found), *row) for row, found in runs.items()],
        ),
        within=_lines(["algorithm", *headings], within),
        refused=_lines([*FIELDS, "message"], listed),
    )


PAGE = """# Valid combinations

This page lists all combinations of an algorithm, a schedule and an uplink, with and without
sessions, and with assigner `covered` (submodels of clients), `partition` (of cells) or none.
{runs} of {total} combinations are valid; the others are refused before any training. `make product`
checks all of them on a small data set and writes this page.

## Supported

Uplinks supported by each algorithm under each schedule:

{table}

With assigner `covered` and budget `deadline`, by which a client trains what it can in some seconds:

{within}

## Refused

A combination with several faults gets one of these messages. A, S, U and G stand for the names of
the algorithm, the schedule, the uplink and the assigner.

{refused}
"""


def _uplinks(
    among: Iterable[Combination],
    algorithm: str,
    assigner: str | None,
    schedule: str,
    sessions: bool,
) -> str:
    """The uplinks of the valid ones of these combinations, in words."""
    wanted = (algorithm, schedule, sessions, assigner)
    found = [c for c in among if (c.algorithm, c.schedule, c.sessions, c.assigner) == wanted]
    valid = [c.uplink for c in found if c.refusal() is None]
    return "all" if len(valid) == len(found) else ", ".join(valid) or "none"


def _of_any(reason: str, combination: Combination) -> str:
    """The message with the names of algorithm, schedule, uplink, assigner as A, S, U, G."""
    for letter, field in zip("ASUG", FIELDS, strict=True):
        name = getattr(combination, field)
        reason = reason.replace(f'"{name}"', letter, 1)
        reason = reason.replace(f"={name!r}", f"={letter}", 1)
    return reason


def _values(found: Iterable[Combination], kind: str) -> str:
    """The names of this kind in the combinations, or "all"."""
    names = sorted({getattr(combination, kind) or "none" for combination in found})
    known: Collection[str] = ("none", *ASSIGNERS)
    if kind != "assigner":
        known = algorithm_classes() if kind == "algorithm" else KINDS[kind].classes()
    return "all" if len(names) == len(known) else _names(names)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [headings, ["---"] * len(headings), *rows])
