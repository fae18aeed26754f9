"""Timelines of rounds: when each client computes, waits and sends, without data and training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from channels.arguments import is_number
from channels.arrays import IntArray
from channels.notes import Notes
from wirelessfl.air.client_costs import ClientCosts
from wirelessfl.air.plan import Plan
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.figures.curves import COLOURS, new_figure, save_figure, style
from wirelessfl.base.figures.marks import Span, draw_spans
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.engine.events import Report, Stop
from wirelessfl.engine.rounds.client_log import ClientLog, entries, joined
from wirelessfl.runs.build.building import build_resolved
from wirelessfl.runs.build.configured import configured_call
from wirelessfl.runs.build.given import Given
from wirelessfl.runs.build.planners import Untrained
from wirelessfl.runs.pricing.price import check_priceable, follow, notes_of
from wirelessfl.training.steps import StepCounts

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
        spans = self.spans(cell)
        return (spans[0][0], spans[-1][1]) if spans else None

    def spans(self, cell: int) -> list[tuple[float, float]]:
        """Lowest and highest edges of the neighbouring lines of a cell."""
        its = np.sort(self.height[self.cell == cell])
        parts = np.split(its, np.flatnonzero(np.diff(its) > 1.1) + 1)
        return [(float(part[0]) - 0.5, float(part[-1]) + 0.5) for part in parts if part.size]

    def served(self, costs: ClientCosts) -> _Lines:
        """The lines in a round in which its clients may have other cells."""
        cell = self.cell.copy()
        at = np.searchsorted(self.clients, costs.clients).clip(max=len(cell) - 1)
        there = self.clients[at] == costs.clients
        cell[at[there]] = costs.cell[there]
        return replace(self, cell=cell)


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
    numbers = sorted(cell_of)
    if len(numbers) > LINES:
        room = max(LINES - len(keep), 0)
        others = [client for client in numbers if client not in keep]
        places = np.linspace(0, len(others) - 1, room).round().astype(int)
        numbers = sorted([*sorted(keep)[:LINES], *(others[place] for place in places)])
    clients = np.array(numbers)
    cell = np.array([cell_of[client] for client in numbers])
    order = np.lexsort((clients, cell))
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order))
    _, group = np.unique(cell, return_inverse=True)
    return _Lines(clients, cell, -(rank + GAP * group))  # the first client on top


def _collect(lap: Lap, lines: _Lines, bars: Bars, panel: Axes) -> None:
    """Add the bars of a round and the outlines of stragglers, and draw the ends of edge rounds."""
    costs = lap.costs
    lines, heights = lines.served(costs), lines.of(costs.clients)
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
            for span in lines.spans(cell):
                panel.plot([begun[cell]] * 2, span, color="0.35", linewidth=0.6, zorder=2)
    for cell in np.unique(costs.cell).tolist():
        after = costs.after_seconds[cell]
        if after > 0:
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


MOST_ROUNDS = 1000
"""Rounds that a figure can show; drawing them takes half a minute."""
ROUNDS = 2
"""Rounds of a timeline if neither their number nor the seconds are given."""


@dataclass(frozen=True, eq=False)
class RoundTimeline:
    """What each client does in the first rounds of a run.

    Args:
        laps: the rounds, in order of their ends; with asynchronous cells, those of each cell.
        under_way: rounds of asynchronous cells that have not ended; the log does not have them.
        clients: number of clients of the run.
        cells: number of cells.
        seconds: simulated seconds that are shown.
        radio: whether updates cross the radio channel.
        steps: number of local steps of each client.
    """

    laps: list[Lap]
    under_way: list[Lap]
    clients: int
    cells: int
    seconds: float
    radio: bool
    steps: StepCounts

    @cached_property
    def log(self) -> ClientLog:
        """Seconds, joules, SNR and rate of each client in each round, as in the client log."""
        return joined(
            [
                entries(lap.costs, place, lap.number, lap.trial, self.radio, self.steps)
                for place, lap in enumerate(self.laps, start=1)
            ]
        )

    def summary(self) -> dict[str, Any]:
        """Where the time goes, and the stragglers; see ``ClientLog.summary``."""
        return self.log.summary()

    def lines(self) -> list[str]:
        """The summary as text, one line each."""
        return self.log.lines()

    def draw(self, path: Path) -> list[Path]:
        """Draw one line per client, grouped by cell, with the ends of edge rounds and rounds.

        Args:
            path: path of the figure; a .png and a .pdf file are written.

        Returns:
            The two files.
        """
        laps = [*self.laps, *self.under_way]
        return save_figure(draw_rounds(laps, self.clients, self.cells, self.seconds), path)


def round_timeline(
    config: Config | Mapping[str, Any] | str | Path,
    rounds: int | None = None,
    seconds: float | None = None,
    **given: Unpack[Given],
) -> RoundTimeline:
    """Simulate the first rounds of a run without its data and without training.

    Times are those of the run, as ``wirelessfl.price`` computes them.

    Args:
        config: a configuration, nested tables of settings, or the path of a TOML file.
        rounds: number of rounds, or of merges of asynchronous cells; None for those that begin
            within ``seconds`` or, without them, for 2.
        seconds: simulated seconds to show; None for all of the rounds.
        given: the objects of the run, see ``wirelessfl.Given``.

    Raises:
        ConfigError: a wrong setting, a wrong number of rounds or seconds, more than 1000 rounds, or
            the times depend on training, as for ``wirelessfl.price``.
        DataError: the data set must be read, but is missing or damaged.
    """
    config, objects = configured_call(round_timeline, config, given)
    if config.regime.of_tasks:
        raise ConfigError(
            f"schedule {config.named('schedule')!r} has requests to clients or rounds of tasks, "
            "which this timeline does not show: use the command `wirelessfl timeline`."
        )
    if seconds is not None and not (is_number(seconds) and 0 < seconds < float("inf")):
        raise ConfigError(f"seconds is {shown(seconds)}: give a finite number > 0.")
    if rounds is None and seconds is None:
        rounds = min(ROUNDS, config.total_rounds)
    rounds = check_priceable(config, rounds, True)
    if rounds is not None and rounds > MOST_ROUNDS:
        raise ConfigError(
            f"rounds is {rounds}: a timeline shows at most {MOST_ROUNDS}. Give fewer; "
            "wirelessfl.price has the costs of all rounds, and --client-log those of each client."
        )
    laps: list[Lap] = []
    free: dict[int, float] = {}
    """With asynchronous cells, when each cell received its current model."""

    under_way: list[Lap] = []

    setup = build_resolved(config, objects, untrained=Untrained(rounds))
    clock, first = setup.clock, list[Plan]()

    def report(report: Report) -> Stop | None:
        under_way[:] = [
            Lap(plan.round + 1, False, free.get(cell, 0.0), ClientCosts.of(plan), cell)
            for cell, plan in setup.one_model.under_way().items()
        ]
        late = seconds is not None and clock.now >= seconds
        return Stop() if late or report.round == rounds else None

    def log(plan: Plan, trial: bool) -> None:
        if len(laps) >= MOST_ROUNDS:
            length, most = f"seconds is {seconds}", f"at most {clock.now:.3g}"
            if seconds is None:
                length, most = f"rounds is {rounds}, with trial rounds and all cells", "fewer"
            raise ConfigError(
                f"{length}: these are more than {MOST_ROUNDS} rounds, which a timeline does not "
                f"show. Give {most}."
            )
        first[:] = first or [plan]
        costs = ClientCosts.of(plan)
        begun, cell = clock.now - costs.seconds, None
        if config.regime.merges_cells:
            cell = int(costs.cell[0])
            begun, free[cell] = free.get(cell, 0.0), clock.now
        laps.append(Lap(plan.round + 1, trial, begun, costs, cell))

    setup.one_model.ledger.log = log
    follow(setup, report, config.training.max_seconds if rounds is None else None)
    if not laps:
        raise ConfigError(
            f"no round ends within max_seconds={config.training.max_seconds}: raise it, or leave "
            "it out."
        )
    Notes()(*notes_of(setup, first))
    end = max(lap.begin + lap.costs.seconds for lap in laps)
    return RoundTimeline(
        laps,
        under_way,
        setup.network.clients,
        setup.network.cells,
        end if seconds is None else min(end, float(seconds)),
        config.uplink.radio,
        setup.planner.settings.steps,
    )
