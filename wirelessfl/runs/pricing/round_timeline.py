"""Timelines of rounds: when each client computes, waits and sends, without data and training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from channels.arguments import is_number
from channels.notes import Notes
from wirelessfl.air.client_costs import ClientCosts
from wirelessfl.air.plan import Plan
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.figures.curves import save_figure
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.engine.events import Report, Scheduler
from wirelessfl.engine.rounds.client_log import ClientLog, entries, joined
from wirelessfl.runs.build.configured import configured_call
from wirelessfl.runs.build.given import Given
from wirelessfl.runs.pricing.price import Simulation, check_priceable, simulated
from wirelessfl.runs.pricing.round_picture import Lap, draw_rounds
from wirelessfl.runs.pricing.untrained import Until
from wirelessfl.training.steps import StepCounts

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

    def report(simulation: Simulation, report: Report) -> None:
        under_way[:] = [
            Lap(plan.round + 1, False, free.get(cell, 0.0), ClientCosts.of(plan), cell)
            for cell, plan in simulation.handler.under_way().items()
        ]

    def prepare(simulation: Simulation, schedule: Scheduler) -> Scheduler:
        clock = simulation.clock

        def log(plan: Plan, trial: bool) -> None:
            if len(laps) >= MOST_ROUNDS:
                raise ConfigError(
                    f"seconds is {seconds}: these are more than {MOST_ROUNDS} rounds, which a "
                    f"timeline does not show. Give at most {clock.now:.3g}."
                )
            costs = ClientCosts.of(plan)
            begun, cell = clock.now - costs.seconds, None
            if config.regime.merges_cells:
                cell = int(costs.cell[0])
                begun, free[cell] = free.get(cell, 0.0), clock.now
            laps.append(Lap(plan.round + 1, trial, begun, costs, cell))

        simulation.training.log = log
        if seconds is None:
            return schedule
        return Until(schedule, lambda report: clock.now >= seconds)

    found = simulated(config, objects, rounds, report, prepare=prepare)
    if not laps:
        raise ConfigError(
            f"no round ends within max_seconds={config.training.max_seconds}: raise it, or leave "
            "it out."
        )
    Notes()(*found.notes(config))
    end = max(lap.begin + lap.costs.seconds for lap in laps)
    network = found.planned.planner.network
    return RoundTimeline(
        laps,
        under_way,
        network.clients,
        network.cells,
        end if seconds is None else min(end, float(seconds)),
        config.uplink.radio,
        found.planned.planner.settings.steps,
    )
