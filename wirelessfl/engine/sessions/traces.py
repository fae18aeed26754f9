"""Recorded stays of clients, from a CSV file or from code."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from channels.arrays import BoolArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import check_count
from wirelessfl.engine.sessions.processes import Change

COLUMNS = ("client", "join", "leave")
OTHER_NAMES = {"begin": "join", "end": "leave"}


class Stay(NamedTuple):
    """Stay of a client from ``join`` until ``leave``; infinity means until the end of the run."""

    client: int
    join: float
    leave: float = math.inf


@dataclass(frozen=True)
class Trace:
    """Recorded presence of clients.

    Stays of a client are merged if one starts exactly when the other ends.

    Args:
        stays: stays in any order; a client may have several.
        clients: number of clients in the run; clients without a stay never join.
        period: time after which the trace repeats; None for never.

    Raises:
        ConfigError: a stay is invalid, two stays of a client overlap, or there are no stays.
    """

    stays: tuple[Stay, ...]
    clients: int
    period: float | None = None

    def __post_init__(self) -> None:
        names = [f"stays[{index}]" for index in range(len(self.stays))]
        if not names:
            raise ConfigError("stays is empty: give at least one stay.")
        _check(self.stays, self.clients, names)
        if self.period is not None and (last := max(s.leave for s in self.stays)) > self.period:
            raise ConfigError(
                f"availability_period={self.period:g} conflicts with a trace that ends at "
                f"{last:g}: choose a period of at least that, and give every stay an end."
            )

    @cached_property
    def _merged(self) -> list[Stay]:
        """Stays sorted by client and time, with a gap between any two stays of a client."""
        merged: list[Stay] = []
        for stay in sorted(self.stays):
            if merged and merged[-1].client == stay.client and merged[-1].leave == stay.join:
                merged[-1] = merged[-1]._replace(leave=stay.leave)
            else:
                merged.append(stay)
        return merged

    @cached_property
    def _changes(self) -> list[Change]:
        """The changes of one period, or all of them; those at 0 are left out."""
        starts = {stay.client for stay in self._merged if stay.join == 0}
        joins = [Change(s.join, s.client, joins=True) for s in self._merged if s.join > 0]
        leaves = [
            Change(s.leave, s.client, joins=False)
            for s in self._merged
            if s.leave < math.inf and not (s.leave == self.period and s.client in starts)
        ]
        if self.period is not None:  # who is present at 0 joins again, unless it has stayed
            stays = {s.client for s in self._merged if s.leave == self.period}
            joins += [Change(self.period, client, joins=True) for client in starts - stays]
        return sorted(joins + leaves, key=lambda c: (c.time, c.joins, c.client))

    @property
    def departures(self) -> bool:
        """Whether a client ever leaves."""
        return not all(change.joins for change in self._changes)

    def initial(self) -> BoolArray:
        """Clients present at time 0, [clients] boolean."""
        present = np.zeros(self.clients, dtype=np.bool_)
        present[[stay.client for stay in self._merged if stay.join == 0]] = True
        return present

    def changes(self) -> Iterator[Change]:
        """All changes after time 0; infinitely many if the trace repeats."""
        if self.period is None:
            return iter(self._changes)
        return (
            Change(number * self.period + change.time, change.client, change.joins)
            for number in itertools.count()
            for change in self._changes
        )


def read_trace(path: Path, clients: int, period: float | None = None) -> Trace:
    """Read a trace from a CSV file with the columns client, join and leave, in any order.

    ``begin`` and ``end`` are other names of ``join`` and ``leave``.

    Other columns, blank lines, and spaces around values are ignored. An empty ``leave`` or inf
    means until the end of the run.

    Args:
        path: the file, in UTF-8.
        clients: number of clients in the run; they are numbered from 0.
        period: time after which the trace repeats; None for never.
    """
    try:
        # utf-8-sig removes a spreadsheet's byte order mark before the first column's name.
        text = path.read_text(encoding="utf-8-sig")
        lines = csv.reader(text.splitlines(), skipinitialspace=True)
        rows = [(lines.line_num, [value.strip() for value in row]) for row in lines]
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}. Give a CSV file with the header "
            f"{','.join(COLUMNS)}."
        ) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path} is not a CSV file: {error}. Save it as CSV in UTF-8.") from None
    rows = [(line, row) for line, row in rows if any(row)]
    if len(rows) < 2:
        what = "has a header and no stays" if rows else "is empty"
        raise ConfigError(
            f"{path} {what}: give the header {','.join(COLUMNS)} and one line per stay."
        )
    (line, header), *rest = rows
    header = [OTHER_NAMES.get(name, name) for name in header]
    for column in COLUMNS:
        if header.count(column) != 1:
            raise ConfigError(
                f"{path}, line {line}: the header {','.join(header)!r} has {header.count(column)} "
                f"columns {column!r}. Give exactly one, and separate columns by commas."
            )
    stays, names = [], []
    for line, row in rest:
        names.append(f"{path}, line {line}")
        if len(row) > len(header):
            raise ConfigError(
                f"{names[-1]} has {len(row)} values, and the header has {len(header)} columns. "
                "Remove the extra values."
            )
        values = dict(zip(header, row + [""] * (len(header) - len(row)), strict=True))
        stays.append(_stay(values, names[-1]))
    _check(stays, clients, names)
    return Trace(tuple(stays), clients, period)


def _stay(values: dict[str, str], name: str) -> Stay:
    client, join, leave = (values[column] for column in COLUMNS)
    try:
        number = int(client)
    except ValueError:
        raise ConfigError(
            f"{name}: client is {client!r}. Give a client number, an integer >= 0."
        ) from None
    times = []
    for column, value in (("join", join), ("leave", leave or "inf")):
        try:
            times.append(float(value))
        except ValueError:
            remedy = "a number" if column == "join" else "a number, or nothing for no end"
            raise ConfigError(f"{name}: {column} is {value!r}. Give {remedy}.") from None
    return Stay(number, *times)


def _check(stays: Sequence[Stay], clients: int, names: Sequence[str]) -> None:
    """Check stays; ``names`` describes the source of each."""
    for (client, join, leave), name in zip(stays, names, strict=True):
        try:
            check_count("clients", clients)
            check_count(f"{name}: client", client, min_value=0)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        if client >= clients:
            raise ConfigError(
                f"{name}: client is {client}, and the run has {clients} clients. Give 0 to "
                f"{clients - 1}, or raise clients."
            )
        if not (math.isfinite(join) and join >= 0):
            raise ConfigError(f"{name}: join is {join}. Give a finite number >= 0.")
        if not leave > join:
            raise ConfigError(
                f"{name}: leave is {leave}, and join is {join}. Give a leave time after join, or "
                "inf for no end."
            )
    order = sorted(range(len(stays)), key=lambda index: stays[index])
    for before, after in itertools.pairwise(order):
        first, second = stays[before], stays[after]
        if first.client == second.client and second.join < first.leave:
            raise ConfigError(
                f"{names[after]}: client {second.client} joins at {second.join}, and is already "
                f"present from {first.join} to {first.leave} ({names[before]}). Remove the overlap."
            )
