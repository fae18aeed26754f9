"""Recorded stays of clients, from a CSV file or by hand."""

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
from wirelessfl.errors import ConfigError
from wirelessfl.numbers import check_count
from wirelessfl.sessions.processes import Change

COLUMNS = ("client", "join", "leave")


class Stay(NamedTuple):
    """A client is present from ``join`` until ``leave``; infinity means to the end."""

    client: int
    join: float
    leave: float = math.inf


@dataclass(frozen=True)
class Trace:
    """Recorded presence of clients.

    Consecutive stays of a client, one beginning exactly where the other ends, are merged.

    Args:
        stays: in any order; a client may have several.
        clients: of the whole run; those without a stay never join.

    Raises:
        ConfigError: a stay is impossible, two of one client overlap, or there is none.
    """

    stays: tuple[Stay, ...]
    clients: int

    def __post_init__(self) -> None:
        names = [f"stays[{place}]" for place in range(len(self.stays))]
        if not names:
            raise ConfigError("stays is empty: give at least one.")
        _check(self.stays, self.clients, names)

    @cached_property
    def _merged(self) -> list[Stay]:
        """By client and time, with a gap between any two of a client."""
        merged: list[Stay] = []
        for stay in sorted(self.stays):
            if merged and merged[-1].client == stay.client and merged[-1].leave == stay.join:
                merged[-1] = merged[-1]._replace(leave=stay.leave)
            else:
                merged.append(stay)
        return merged

    @cached_property
    def _changes(self) -> list[Change]:
        joins = [Change(s.join, s.client, joins=True) for s in self._merged if s.join > 0]
        leaves = [
            Change(s.leave, s.client, joins=False) for s in self._merged if s.leave < math.inf
        ]
        return sorted(joins + leaves, key=lambda c: (c.time, c.joins, c.client))

    def initial(self) -> BoolArray:
        """[clients], clients present at time 0."""
        present = np.zeros(self.clients, dtype=np.bool_)
        present[[stay.client for stay in self._merged if stay.join == 0]] = True
        return present

    def changes(self) -> Iterator[Change]:
        """All later changes."""
        return iter(self._changes)


def read_trace(path: Path, clients: int) -> Trace:
    """A trace from a CSV file with the columns client, join and leave, in any order.

    Other columns are passed over, and so are blank lines and spaces around values; a ``leave`` that
    is empty or inf means to the end.

    Args:
        path: of the file, in UTF-8.
        clients: of the whole run; they are numbered from 0.

    Raises:
        ConfigError: the file cannot be read, holds no stays, or a line of it is wrong; the message
            names file, line and value.
    """
    try:
        # A spreadsheet's byte order mark is no part of the first column's name.
        text = path.read_text(encoding="utf-8-sig")
        lines = csv.reader(text.splitlines(), skipinitialspace=True)
        rows = [(lines.line_num, [value.strip() for value in row]) for row in lines]
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}. Give a CSV file with the header "
            f"{','.join(COLUMNS)}."
        ) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path} is no CSV text: {error}. Save it as CSV in UTF-8.") from None
    rows = [(line, row) for line, row in rows if any(row)]
    if len(rows) < 2:
        what = "has a header and no stays" if rows else "is empty"
        raise ConfigError(
            f"{path} {what}: give the header {','.join(COLUMNS)} and a line for each stay."
        )
    (line, header), *rest = rows
    for column in COLUMNS:
        if header.count(column) != 1:
            raise ConfigError(
                f"{path}, line {line}: column {column!r} stands {header.count(column)} times in "
                f"the header {','.join(header)!r}. Name it once, with commas between columns."
            )
    stays, names = [], []
    for line, row in rest:
        names.append(f"{path}, line {line}")
        if len(row) > len(header):
            raise ConfigError(
                f"{names[-1]}: {len(row)} values under {len(header)} columns. Leave out what has "
                "no column."
            )
        values = dict(zip(header, row + [""] * (len(header) - len(row)), strict=True))
        stays.append(_stay(values, names[-1]))
    _check(stays, clients, names)
    return Trace(tuple(stays), clients)


def _stay(values: dict[str, str], name: str) -> Stay:
    """A line's stay.

    Raises:
        ConfigError: a value is no number.
    """
    client, join, leave = (values[column] for column in COLUMNS)
    try:
        number = int(client)
    except ValueError:
        raise ConfigError(
            f"{name}: client is {client!r}. Give a whole number, counting from 0."
        ) from None
    times = []
    for column, value in (("join", join), ("leave", leave or "inf")):
        try:
            times.append(float(value))
        except ValueError:
            remedy = "a number" if column == "join" else "a number, or nothing for the end"
            raise ConfigError(f"{name}: {column} is {value!r}. Give {remedy}.") from None
    return Stay(number, *times)


def _check(stays: Sequence[Stay], clients: int, names: Sequence[str]) -> None:
    """Refuse stays that cannot be; ``names`` says where each comes from.

    Raises:
        ConfigError: one cannot be, or two of one client overlap.
    """
    for (client, join, leave), name in zip(stays, names, strict=True):
        try:
            check_count("clients", clients)
            check_count(f"{name}: client", client, min_value=0)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        if client >= clients:
            raise ConfigError(
                f"{name}: client is {client}, and there are {clients}. Give 0 to {clients - 1}, or "
                "have more clients."
            )
        if not (math.isfinite(join) and join >= 0):
            raise ConfigError(f"{name}: join is {join}. Give a finite number, 0 or above.")
        if not leave > join:
            raise ConfigError(
                f"{name}: leave is {leave}, with join {join}. Give a later time, or inf for the "
                "end."
            )
    order = sorted(range(len(stays)), key=lambda place: stays[place])
    for before, after in itertools.pairwise(order):
        first, second = stays[before], stays[after]
        if first.client == second.client and second.join < first.leave:
            raise ConfigError(
                f"{names[after]}: client {second.client} joins at {second.join} and is there from "
                f"{first.join} to {first.leave} already ({names[before]}). Let the stays of a "
                "client not overlap."
            )
