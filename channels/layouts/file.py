"""Positions from a file."""

from __future__ import annotations

import csv
import math
import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from channels.arguments import checked
from channels.arrays import FloatArray, IntArray
from channels.layouts.layout import SHORTEST_M, Layout, Positions
from channels.streams import Stream
from channels.validation import shown

KINDS = ("base_station", "client")
PLACE, HEIGHT, WATTS = ("x_m", "y_m"), "z_m", "interference_watts"
REQUIRED = ("kind", *PLACE)
NEAREST_IN_METRES = 1.0
"""If no client is farther from its base station, the positions are not in metres."""


@dataclass(frozen=True)
class FileLayout(Layout):
    r"""Positions from a CSV file with the columns ``kind``, ``x_m`` and ``y_m``.

    Further columns are ``z_m``, ``cell`` and ``interference_watts``.

    A row of kind ``base_station`` is a cell; cells are numbered 0, 1, ... in the order of these
    rows. A row of kind ``client`` is a client. Its ``cell`` is that number; without it, the cell is
    that of the nearest base station. Heights ``z_m`` replace those of the path loss; a kind of rows
    has all or none. So do clients with ``interference_watts``, the interference from elsewhere that
    the edge server hears while a client sends. Clients are sorted by cell, in the order of the
    file.

    >>> from pathlib import Path
    >>> import channels
    >>> rows = ["kind,x_m,y_m", "base_station,0,0", "client,30,40", "client,0,20"]
    >>> _ = Path("positions.csv").write_text("\n".join(rows))
    >>> layout = channels.FileLayout("positions.csv")
    >>> layout.place(None, None, channels.Stream(1)).distance_m.tolist()
    [50.0, 20.0]

    Args:
        path: path of the file, UTF-8, with a header.
    """

    path: str | PathLike[str]

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, PathLike)):
            raise TypeError(f"path is {shown(self.path)}: give the path of a CSV file.")
        if not str(self.path):
            raise ValueError("path is empty: give the path of a CSV file with positions.")

    @checked()
    def place(
        self,
        cells: int | None,
        clients: int | None,
        stream: Stream,
        shortest_m: float = SHORTEST_M,
    ) -> Positions:
        """See :class:`Layout`; nothing is drawn, and given distances are kept.

        Raises:
            ValueError: the file cannot be read, has an error, or other numbers of cells or clients.
        """
        stations, positions, cell_of, watts = self._read()
        for name, expected, rows in (
            ("cells", cells, len(stations)),
            ("clients", clients, len(positions)),
        ):
            if expected is not None and expected != rows:
                kind = KINDS[name == "clients"]
                raise ValueError(
                    f"{name} is {expected}, and {self.path} has {rows} rows of kind {kind}: give "
                    f"{rows}, or omit {name}."
                )
        filled = np.bincount(cell_of, minlength=len(stations))
        if not filled.all():
            raise ValueError(
                f"{self.path}: cell {int(filled.argmin())} has no client. Remove its base station, "
                "or give it a client."
            )
        order = cell_of.argsort(kind="stable")
        watts = None if watts is None else watts[order]
        result = Positions(stations, positions[order], cell_of[order], order, watts)
        if (farthest := float(result.distance_m.max())) < NEAREST_IN_METRES:
            raise ValueError(
                f"{self.path}: no client is farther than {farthest:g} from its base station. Give "
                "metres; these seem to be kilometres or degrees."
            )
        return result

    def _read(self) -> tuple[FloatArray, FloatArray, IntArray, FloatArray | None]:
        """Base stations [cells, 2 or 3], clients [clients, 2 or 3], their cells and watts."""
        try:
            with Path(os.path.expanduser(self.path)).open(encoding="utf-8-sig", newline="") as file:
                reader = csv.DictReader(file, skipinitialspace=True)
                header = [name.strip() for name in reader.fieldnames or ()]
                self._check_header(header)
                reader.fieldnames = header
                rows = [(reader.line_num, row) for row in reader]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            text = error.strerror if isinstance(error, OSError) else str(error)
            raise ValueError(f"{self.path}: cannot be read as CSV: {text}.") from error
        positions: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
        cells: list[tuple[int, str]] = []
        watts: list[float] = []
        for line, row in rows:
            kind = (row["kind"] or "").strip()
            if kind not in KINDS:
                raise ValueError(
                    f"{self.path}, line {line}: kind is {kind!r}. Give base_station or client."
                )
            columns = [*PLACE, HEIGHT] if (row.get(HEIGHT) or "").strip() else PLACE
            metres = [self._number(line, row, column, "metres") for column in columns]
            if positions[kind] and len(metres) != len(positions[kind][0]):
                raise ValueError(
                    f"{self.path}, line {line}: {HEIGHT} is given for some rows of kind {kind}. "
                    "Give it for all or none."
                )
            positions[kind].append(metres)
            if kind != "client" and (row.get(WATTS) or "").strip():
                raise ValueError(
                    f"{self.path}, line {line}: {WATTS} is that of a client, and this row is a "
                    f"{kind}. Leave it empty."
                )
            if kind == "client":
                if (row.get(WATTS) or "").strip():
                    watts.append(self._number(line, row, WATTS, "watts"))
                cells.append((line, (row.get("cell") or "").strip()))
                if watts and len(watts) != len(cells):
                    raise ValueError(
                        f"{self.path}, line {line}: {WATTS} is given for some clients. Give it for "
                        "all or none."
                    )
        for kind in KINDS:
            if not positions[kind]:
                raise ValueError(f"{self.path}: no row of kind {kind}. Give at least one.")
        stations, clients = (np.array(positions[kind]) for kind in KINDS)
        received = np.array(watts) if watts else None
        return stations, clients, self._cells(cells, stations, clients), received

    def _check_header(self, header: list[str]) -> None:
        missing = [name for name in REQUIRED if name not in header]
        if missing:
            raise ValueError(
                f"{self.path}: no column {missing[0]} among {', '.join(header) or 'none'}. Give "
                "the columns kind, x_m and y_m, with positions in metres."
            )

    def _number(self, line: int, row: dict[str, str], column: str, unit: str) -> float:
        text = (row[column] or "").strip()
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(
                f"{self.path}, line {line}: {column} is {text!r}. Give a number of {unit}."
            )
        return value

    def _cells(
        self, entries: list[tuple[int, str]], stations: FloatArray, clients: FloatArray
    ) -> IntArray:
        """Cell of each client: the given one, or that of the nearest base station."""
        cells = np.zeros(len(clients), dtype=np.int64)
        nearest = np.full(len(clients), np.inf)
        for cell, station in enumerate(stations):
            distance = np.hypot(*(clients[:, :2] - station[:2]).T)
            cells[distance < nearest] = cell
            nearest = np.minimum(nearest, distance)
        for place, (line, text) in enumerate(entries):
            if not text:
                continue
            if text.isdecimal() and int(text) < len(stations):
                cells[place] = int(text)
            else:
                raise ValueError(
                    f"{self.path}, line {line}: cell is {text!r}. Give 0 to {len(stations) - 1}, "
                    "the number of a base station, or leave it empty."
                )
        return cells
