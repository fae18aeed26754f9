"""Draws a timeline of rounds: one line per client, grouped by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from channels.arrays import IntArray
from wirelessfl.air.client_costs import ClientCosts
from wirelessfl.base.figures.curves import COLOURS, new_figure, style
from wirelessfl.base.figures.marks import Span, draw_spans

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = 60
"""Maximum number of clients in a figure."""
NAMED = 16
"""Maximum number of clients whose numbers are shown on the axis."""
TIED = 3
"""Number of clients from which an end together has no straggler to mark."""
GAP = 0.8
"""Space between cells, in lines."""
STRAGGLER = "straggler"
LOOKS: dict[str, dict[str, Any]] = {
    "downloading": {"color": COLOURS[5]},
    "computing": {"color": COLOURS[0]},
    "waiting for the turn": {"color": "0.85"},
    "sending": {"color": COLOURS[1]},
    "sending in turns": {"color": COLOURS[4]},
    "sending, lost": {
        "facecolor": "white",
        "edgecolor": COLOURS[1],
        "hatch": "//////",
        "linewidth": 0.3,
    },
    "backhaul": {"color": COLOURS[3], "alpha": 0.35},
    STRAGGLER: {"facecolor": "none", "edgecolor": "black", "linewidth": 0.9, "zorder": 4},
}
"""What clients do, in the order of the legend."""
Bars = dict[str, list[Span]]


@dataclass(frozen=True, eq=False)
class Lap:
    """A global round of all cells or, with asynchronous cells, of one.

    Args:
        number: number of the round, from 1.
        trial: whether it is a trial round of a session.
        begin: simulated seconds at which it begins.
        costs: what its clients do.
        cell: the cell, if it is asynchronous; None for all cells.
    """

    number: int
    trial: bool
    begin: float
    costs: ClientCosts
    cell: int | None = None


@dataclass(frozen=True, eq=False)
class _Lines:
    """The lines of a figure: which clients, and where."""

    clients: IntArray
    cell: IntArray
    height: np.ndarray[Any, Any]

    def of(self, clients: IntArray) -> dict[int, float]:
        """Heights of those of ``clients`` that have a line, by place in ``clients``."""
        at = np.searchsorted(self.clients, clients)
        at = np.minimum(at, len(self.clients) - 1)
        there = np.flatnonzero(self.clients[at] == clients)
        return {int(place): float(self.height[at[place]]) for place in there}

    def span(self, cell: int) -> tuple[float, float] | None:
        """Lowest and highest edge of a cell's lines; None if it has none."""
        its = self.height[self.cell == cell]
        return (float(its.min()) - 0.5, float(its.max()) + 0.5) if its.size else None


def draw_rounds(laps: Sequence[Lap], clients: int, cells: int, seconds: float) -> Figure:
    """Draw when each client computes, waits and sends.

    Args:
        laps: the rounds.
        clients: number of clients of the run.
        cells: number of cells.
        seconds: simulated seconds to show.
    """
    lines = _lines(laps)
    count = len(lines.clients)
    figure, (panel,) = new_figure(height=1.0 + (0.13 if count <= NAMED else 0.042) * max(count, 4))
    figure.set_figwidth(style().wide)
    bars: Bars = {name: [] for name in LOOKS}
    for lap in laps:
        _collect(lap, lines, bars, panel)
    few = f"{count} of {clients}" if count < clients else f"{count}"
    by = ", by cell" if count > NAMED and cells > 1 else ""
    legend = {name: look for name, look in LOOKS.items() if bars[name]}
    draw_spans(panel, bars, LOOKS, legend, clients=f"{few} clients{by}", thick=("backhaul",))
    for lap in laps:
        end = lap.begin + lap.costs.seconds
        if lap.cell is None:
            panel.axvline(end, color="black", linewidth=0.8, zorder=3)
        elif (span := lines.span(lap.cell)) is not None:
            panel.plot([end, end], span, color="black", linewidth=1.0, zorder=3)
    _label(panel, lines, cells)
    panel.set_xlim(0, seconds * 1.015)
    panel.grid(visible=False)
    return figure


def _lines(laps: Sequence[Lap]) -> _Lines:
    """The clients to draw: all, or the stragglers and an even choice of the others."""
    cell_of: dict[int, int] = {}
    keep = set[int]()
    for lap in laps:
        costs = lap.costs
        cell_of |= dict(zip(costs.clients.tolist(), costs.cell.tolist(), strict=True))
        if costs.stragglers.sum() <= TIED:
            keep |= set(costs.clients[costs.stragglers].tolist())
    known = sorted(cell_of)
    if len(known) > LINES:
        room = max(LINES - len(keep), 0)
        others = [client for client in known if client not in keep]
        places = np.linspace(0, len(others) - 1, room).round().astype(int)
        known = sorted([*sorted(keep)[:LINES], *(others[place] for place in places)])
    clients = np.array(known)
    cell = np.array([cell_of[client] for client in known])
    order = np.lexsort((clients, cell))
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order))
    _, group = np.unique(cell, return_inverse=True)
    return _Lines(clients, cell, -(rank + GAP * group))  # the first client on top


def _collect(lap: Lap, lines: _Lines, bars: Bars, panel: Axes) -> None:
    """Add the bars of a round and the outlines of stragglers, and draw the ends of edge rounds."""
    costs = lap.costs
    heights = lines.of(costs.clients)
    begun = np.full(len(costs.after_seconds), lap.begin)
    straggler = costs.stragglers
    marked = straggler if straggler.sum() <= TIED else np.zeros_like(straggler)
    for edge_round in range(costs.edge_rounds):
        block = costs.block(edge_round)
        for place, height in heights.items():
            start = begun[costs.cell[place]]
            end = _client(costs, block, place, start, height, bars)
            if marked[place] and costs.last[block, place]:
                bars[STRAGGLER].append((start, end - start, height))
        begun = begun + costs.cell_seconds[block]
        for cell in np.unique(costs.cell).tolist():
            span = lines.span(cell)
            if span is not None:
                panel.plot([begun[cell]] * 2, span, color="0.35", linewidth=0.6, zorder=2)
    for cell in np.unique(costs.cell).tolist():
        span, after = lines.span(cell), costs.after_seconds[cell]
        if span is not None and after > 0:
            bars["backhaul"] += [
                (begun[cell], after, height) for height in lines.height[lines.cell == cell]
            ]


def _client(
    costs: ClientCosts,
    block: int,
    place: int,
    begun: float,
    height: float,
    bars: Bars,
) -> float:
    """Add the bars of a client in an edge round; return when the last one ends."""

    def add(name: str, seconds: float) -> None:
        nonlocal begun
        if seconds > 0:
            bars[name].append((begun, float(seconds), height))
            begun += float(seconds)

    wait, send = costs.wait[block, place], costs.send[block, place]
    sending = "sending" if costs.arrived[block if len(costs.arrived) > block else 0, place] else (
        "sending, lost"
    )  # fmt: skip
    add("downloading", costs.download[block, place])
    add("computing", costs.compute[block, place])
    if costs.in_order or wait <= 1e-9 * send or send == 0:
        add("waiting for the turn", wait)
        add(sending, send)
    else:
        add("sending in turns" if sending == "sending" else sending, wait + send)
    return begun


def _label(panel: Axes, lines: _Lines, cells: int) -> None:
    """Numbers of cells or of clients on the axis."""
    count = len(lines.clients)
    panel.set_ylim(float(lines.height.min()) - 1.0, float(lines.height.max()) + 1.0)
    if count <= NAMED:
        first = set(np.unique(lines.cell, return_index=True)[1].tolist())
        names = [
            f"cell {lines.cell[place]}   {client}" if cells > 1 and place in first else f"{client}"
            for place, client in enumerate(lines.clients)
        ]
        panel.set_yticks(lines.height, names)
    elif cells > 1:
        spans = {int(cell): lines.span(cell) for cell in np.unique(lines.cell)}
        middles = {cell: sum(span) / 2 for cell, span in spans.items() if span is not None}
        panel.set_yticks(list(middles.values()), [f"cell {cell}" for cell in middles])
    else:
        panel.set_yticks([])
    panel.tick_params(axis="y", length=0)
