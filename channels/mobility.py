"""Rules by which clients move: at random within their cell, or as a file says."""

from __future__ import annotations

import csv
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from channels.arguments import check_number
from channels.arrays import FloatArray, IntArray
from channels.delay_profile import DelayProfile
from channels.doppler import MODELS, Doppler, Speeds
from channels.fading import Fading
from channels.layouts import Layout, Positions
from channels.layouts.grid import GridLayout
from channels.path_loss.path_loss import LIGHT_M_PER_S
from channels.streams import Stream
from channels.validation import shown

LEGS = 128
"""Legs after which a random walk has come back to its start."""
AT_ONCE = 4096  # clients whose ways are drawn together
FASTEST_KMH = 1000.0
KMH_PER_MPS = 3.6
TIMES = ("round", "seconds")


class Motion(Protocol):
    """Positions of a network's clients in each block."""

    @property
    def where(self) -> Positions:
        """Those in block 0."""

    def positions_m(self, blocks: Sequence[int], clients: IntArray) -> FloatArray:
        """Positions [blocks, clients, 2], or 3 with heights if ``where`` has them, in metres.

        Args:
            blocks: indices of the blocks.
            clients: [clients], client indices.
        """


class Mobility(ABC):
    """A rule by which clients move; a subclass is a frozen dataclass with its settings.

    Positions must depend only on the block and the client, so that any block can be drawn alone.

    >>> import channels
    >>> isinstance(channels.RandomWaypoint(speed_kmh=30.0), channels.Mobility)
    True
    """

    @abstractmethod
    def motion(
        self,
        where: Positions,
        layout: Layout | Positions,
        block_seconds: float,
        stream: Stream,
        shortest_m: float,
    ) -> Motion:
        """The motion of the clients of a network.

        Args:
            where: the layout's positions.
            layout: the layout.
            block_seconds: time from one block to the next.
            stream: randomness of the motion.
            shortest_m: minimum distance of points that are drawn at random to the base station.

        Raises:
            ValueError: the clients of this layout cannot move by this rule.
        """

    def fading(
        self, fading: Fading, carrier_ghz: float | None, block_seconds: float, stream: Stream
    ) -> Fading:
        """The small-scale fading of clients that move by this rule: by default as it is.

        Args:
            fading: that of the network.
            carrier_ghz: carrier of the path loss; None if it has none.
            block_seconds: time from one block to the next.
            stream: randomness of the motion.
        """
        return fading


@dataclass(frozen=True)
class RandomWaypoint(Mobility):
    """Clients walk straight to random points of their cell, one after another, without a pause.

    The first point is the client's position in the layout, in block 0, and all points have the
    distribution of the layout's clients (random waypoint, Johnson & Maltz 1996). Each client has
    one speed. After 128 legs it is back at its first position and walks the same way again, so that
    any block is computed alone.

    >>> import numpy as np
    >>> import channels
    >>> network = channels.placed_network(
    ...     channels.Disc(100.0), channels.Umi(), cells=1, clients=3, stream=channels.Stream(1),
    ...     cpu_hz=1e9, mobility=channels.RandomWaypoint(speed_kmh=36.0), block_seconds=0.1,
    ... )
    >>> way = network.positions_m(range(3))
    >>> np.hypot(*(way[1:] - way[:-1]).T).round(6).T.tolist()  # 10 m/s in 0.1 s
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    Args:
        speed_kmh: speed of all clients, or (LOW, HIGH) for uniform speeds; from 0 to 1000 km/h.
        doppler: how the fading of consecutive blocks is correlated by the Doppler shift v f_c / c
            of each client's speed: ``"jakes"`` or ``"ar1"``, see :class:`Doppler`; ``"none"`` for
            the fading of the network as it is. f_c is the carrier of the path loss.
    """

    speed_kmh: float | tuple[float, float] = 3.0
    doppler: Literal["none", "jakes", "ar1"] = "none"

    def __post_init__(self) -> None:
        ends = self.ends
        for speed in ends:
            check_number("speed_kmh", speed, "km/h")
        if len(ends) != 2 or not 0 <= ends[0] <= ends[1] <= FASTEST_KMH:
            raise ValueError(
                f"speed_kmh is {shown(self.speed_kmh)}: give 0 to {FASTEST_KMH:g} km/h, or "
                "LOW,HIGH."
            )
        if self.doppler not in ("none", *MODELS):
            raise ValueError(f"doppler is {shown(self.doppler)}: choose none, jakes or ar1.")

    @property
    def ends(self) -> tuple[float, ...]:
        """Lowest and highest speed, in km/h."""
        if isinstance(self.speed_kmh, tuple | list):
            return tuple(self.speed_kmh)
        return self.speed_kmh, self.speed_kmh

    def motion(
        self,
        where: Positions,
        layout: Layout | Positions,
        block_seconds: float,
        stream: Stream,
        shortest_m: float,
    ) -> Motion:
        """See :class:`Mobility`."""
        if not isinstance(layout, GridLayout):
            raise ValueError(
                f"random waypoints need the area of a cell, which {type(layout).__name__} does not "
                "have: choose the layout disc, hexagonal or ring, or give the positions of a trace."
            )
        return _Ways(self, layout, where, block_seconds, stream, shortest_m)

    def fading(
        self, fading: Fading, carrier_ghz: float | None, block_seconds: float, stream: Stream
    ) -> Fading:
        """See :class:`Mobility`; with the Doppler shifts of the speeds if ``doppler`` says so."""
        if self.doppler == "none":
            return fading
        if carrier_ghz is None:
            raise ValueError(
                f"doppler is {self.doppler!r}, and the path loss has no carrier: choose another "
                "path loss, such as umi, or the Doppler shift of the fading, doppler_hz."
            )
        speeds = self.speeds(stream)
        shift_hz = speeds.high * carrier_ghz * 1e9 / LIGHT_M_PER_S
        several = None if speeds.low == speeds.high else speeds

        def shifted(taps: Any) -> Doppler:
            return Doppler(taps, shift_hz, block_seconds, self.doppler, several)  # type: ignore[arg-type]

        if isinstance(fading, DelayProfile):
            return replace(fading, taps=shifted(fading.taps))
        return shifted(fading)

    def speeds(self, stream: Stream) -> Speeds:
        """Speeds of the clients."""
        low, high = self.ends
        return Speeds(low / KMH_PER_MPS, high / KMH_PER_MPS, stream.child("speed"))


@dataclass(frozen=True, eq=False)
class _Ways:
    """Closed ways through random points, at constant speed."""

    rule: RandomWaypoint
    layout: GridLayout
    where: Positions
    block_seconds: float
    stream: Stream
    shortest_m: float

    def positions_m(self, blocks: Sequence[int], clients: IntArray) -> FloatArray:
        """See :class:`Motion`; heights stay."""
        positions = np.repeat(self.where.clients_m[clients][None], len(blocks), axis=0)
        for start in range(0, len(clients), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            positions[:, some, :2] = self._positions(blocks, clients[some])
        return positions

    def _positions(self, blocks: Sequence[int], clients: IntArray) -> FloatArray:
        start = self.where.clients_m[clients][:, None, :2]
        station = self.where.base_stations_m[self.where.cell_of[clients]][:, None, :2]
        rows = (clients[:, None] * LEGS + np.arange(1, LEGS)).ravel()
        offsets = self.layout.offsets(rows, self.stream.child("waypoints"), self.shortest_m)
        points = station + offsets.reshape(len(clients), LEGS - 1, 2)
        points = np.concatenate([start, points, start], axis=1)
        legs = np.diff(points, axis=1)
        lengths = np.hypot(legs[..., 0], legs[..., 1])
        ends = lengths.cumsum(1)
        begins = np.concatenate([np.zeros((len(clients), 1)), ends[:, :-1]], axis=1)
        speeds, each = self.rule.speeds(self.stream).of(clients), np.arange(len(clients))
        positions = np.empty((len(blocks), len(clients), 2))
        for place, block in enumerate(blocks):
            metres = speeds * (self.block_seconds * block) % ends[:, -1]
            leg = np.minimum((ends <= metres[:, None]).sum(1), LEGS - 1)
            part = (metres - begins[each, leg]) / lengths[each, leg]
            positions[place] = points[each, leg] + part[:, None] * legs[each, leg]
        return positions


@dataclass(frozen=True)
class PositionTrace(Mobility):
    r"""Positions from a CSV file: columns ``client``, ``round`` or ``seconds``, x_m, y_m, any z_m.

    ``client`` is the place of a client, from 0, in the order of the layout. ``round`` is the number
    of the block, from 1: the global round, or the edge round where each has a block. Block i, from
    0, is at i times ``block_seconds``. Between two rows a client walks straight at constant speed;
    before its first row it is where this row says, and after its last row it stays. Clients without
    a row stand where the layout has them. Heights ``z_m`` replace those of the path loss; without
    this column clients keep the height that the layout or the path loss gives them.

    >>> from pathlib import Path
    >>> import numpy as np
    >>> import channels
    >>> rows = ["client,round,x_m,y_m", "0,1,50,0", "0,3,70,0"]
    >>> _ = Path("walk.csv").write_text("\n".join(rows))
    >>> network = channels.placed_network(
    ...     channels.Ring(100.0), channels.Umi(), cells=1, clients=2, stream=channels.Stream(1),
    ...     cpu_hz=1e9, mobility=channels.PositionTrace("walk.csv"),
    ... )
    >>> network.positions_m([0, 1, 9], [0])[:, 0].tolist()
    [[50.0, 0.0], [60.0, 0.0], [70.0, 0.0]]

    Args:
        path: path of the file, UTF-8, with a header.
    """

    path: str | PathLike[str]

    def motion(
        self,
        where: Positions,
        layout: Layout | Positions,
        block_seconds: float,
        stream: Stream,
        shortest_m: float,
    ) -> Motion:
        """See :class:`Mobility`."""
        client, time, points = self._read(len(where.cell_of), block_seconds)
        if where.given_as is not None:
            client = where.given_as.argsort()[client]
        order = np.lexsort((time, client))
        client, time, points = client[order], time[order], points[order]
        twice = (np.diff(client) == 0) & (np.diff(time) == 0)
        if twice.any():
            row = int(twice.argmax())
            raise ValueError(
                f"{self.path}: two rows are of one client and time, at {points[row].tolist()} and "
                f"{points[row + 1].tolist()} m. Remove one."
            )
        some, first = np.unique(client), where.clients_m.copy()
        if points.shape[1] > first.shape[1]:
            if len(some) < len(first):
                lacks = int(np.setdiff1d(np.arange(len(first)), some)[0])
                number = lacks if where.given_as is None else int(where.given_as[lacks])
                raise ValueError(
                    f"{self.path}: it has z_m, and client {number} has no row and no height: give "
                    "it a row, or positions of the layout with heights."
                )
            first = np.column_stack([first, np.zeros(len(first))])
        rows = _Rows(replace(where, clients_m=first), client, time, points)
        first[some] = rows.positions_m([0], some)[0]
        return replace(rows, where=replace(where, clients_m=first))

    def _read(self, clients: int, block_seconds: float) -> tuple[IntArray, FloatArray, FloatArray]:
        """Client [rows], block [rows] and position [rows, 2 or 3] of each row."""
        try:
            with Path(os.path.expanduser(self.path)).open(encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(file, skipinitialspace=True)
                header = [name.strip() for name in next(reader, [])]
                lines = [(reader.line_num, row) for row in reader if row]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            text = error.strerror if isinstance(error, OSError) else str(error)
            raise ValueError(f"{self.path}: cannot be read as CSV: {text}.") from error
        times = [name for name in TIMES if name in header]
        missing = [name for name in ("client", "x_m", "y_m") if name not in header]
        metres = [name for name in ("x_m", "y_m", "z_m") if name in header]
        twice = [name for name in ("client", *times, *metres) if header.count(name) > 1]
        if twice:
            raise ValueError(f"{self.path}: two columns are called {twice[0]}. Remove one.")
        if missing or len(times) != 1:
            raise ValueError(
                f"{self.path}: the columns are {', '.join(header) or 'none'}. Give client, x_m, "
                "y_m and one of round and seconds."
            )
        columns = [(name, header.index(name)) for name in ("client", times[0], *metres)]
        values = np.array(
            [[self._number(line, row, *column) for column in columns] for line, row in lines]
        ).reshape(len(lines), len(columns))
        self._check(lines, values, clients, times[0])
        time = values[:, 1] - 1 if times[0] == "round" else values[:, 1] / block_seconds
        return values[:, 0].astype(np.int64), time, values[:, 2:]

    def _number(self, line: int, row: list[str], name: str, place: int) -> float:
        text = row[place].strip() if place < len(row) else ""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(f"{self.path}, line {line}: {name} is {text!r}. Give a number.")
        return value

    def _check(
        self, lines: list[tuple[int, list[str]]], values: FloatArray, clients: int, time: str
    ) -> None:
        """Raise unless clients and times are in range."""
        client, first = values[:, 0], 1 if time == "round" else 0
        wrong = (client != np.floor(client)) | (client < 0) | (client >= clients)
        early = values[:, 1] < first
        for bad, column, need in (
            (wrong, 0, f"client is {{:g}}. Give 0 to {clients - 1}."),
            (early, 1, f"{time} is {{:g}}. Give {first} or more."),
        ):
            if bad.any():
                row = int(bad.argmax())
                raise ValueError(
                    f"{self.path}, line {lines[row][0]}: {need.format(values[row, column])}"
                )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Positions between the rows of a trace."""

    where: Positions
    client: IntArray
    time: FloatArray
    """[rows], in blocks, increasing for each client."""
    points: FloatArray
    """[rows, 2 or 3], in metres."""

    @property
    def heights_m(self) -> list[float]:
        """Lowest and highest ``z_m``; none without the column."""
        heights = self.points[:, 2:]
        return [float(heights.min()), float(heights.max())] if heights.size else []

    def positions_m(self, blocks: Sequence[int], clients: IntArray) -> FloatArray:
        """See :class:`Motion`."""
        at = np.asarray(blocks, dtype=np.float64)
        positions = np.repeat(self.where.clients_m[clients][None], len(at), axis=0)
        begins, ends = (np.searchsorted(self.client, clients, side) for side in ("left", "right"))
        for place in np.flatnonzero(ends > begins).tolist():
            rows = slice(begins[place], ends[place])
            for axis in range(self.points.shape[1]):
                positions[:, place, axis] = np.interp(at, self.time[rows], self.points[rows, axis])
        return positions


__all__ = ["Mobility", "Motion", "PositionTrace", "RandomWaypoint"]
