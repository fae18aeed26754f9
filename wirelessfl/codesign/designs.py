"""A design: a configuration, what it should take, and what its choices bought."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.codesign.closed_loop import ClosedLoop
from wirelessfl.codesign.curves import RoundsCurve
from wirelessfl.codesign.design_choices import DesignChoice
from wirelessfl.codesign.goals import Goal
from wirelessfl.codesign.predicted import Prediction
from wirelessfl.codesign.reports import Reports
from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.import_paths import expanded

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """A run that has been designed; ``wirelessfl.run(design.config)`` trains it.

    >>> import wirelessfl
    >>> def scores(steps):
    ...     return [1 - 1 / (1 + number * steps**0.5) for number in range(1, 100)]
    >>> points = [(2, 1), (2, 4), (8, 1), (8, 4)]
    >>> runs = [wirelessfl.Pilot(h, e, 4, range(1, 100), scores(h * e)) for h, e in points]
    >>> curve = wirelessfl.fit_rounds(runs, [0.8, 0.9])
    >>> config = wirelessfl.Config.from_flags("hfedavg", cells=2, clients=4, hidden=(8,))
    >>> few = {"local_steps": [2, 4, 8], "edge_rounds": [1, 2]}
    >>> design = wirelessfl.design(config, target=0.9, curve=curve, **few).value
    >>> [bought.chosen for bought in design.reports.bought]
    ['all equal', 'bands', 'H and E', 'all']
    >>> design.save("my-design.toml")  # for: wirelessfl run --config my-design.toml
    PosixPath('my-design.toml')

    Args:
        config: its configuration.
        goal: what it is for.
        choice: what has been chosen.
        predicted: rounds, seconds and joules that it should take.
        trainings: number of pilots.
        wall_seconds: wall-clock seconds of the pilots.
        reports: the other designs that have been compared.
    """

    config: Config
    goal: Goal
    choice: DesignChoice
    predicted: Prediction
    trainings: int
    wall_seconds: float
    reports: Reports

    def __repr__(self) -> str:
        """One line."""
        rounds, seconds, joules, accuracy = self.predicted.numbers
        return (
            f"<Design: {self.choice.title}; {accuracy:g} in {rounds:.4g} rounds, {seconds:.4g} s, "
            f"{joules:.4g} J per client>"
        )

    def save(self, path: str | Path) -> Path:
        """Write the configuration as TOML, for ``wirelessfl run --config``.

        Raises:
            ConfigError: the file cannot be written.
        """
        path = expanded(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.config.to_toml(), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"save is {path}: {error.strerror}. Choose another file.") from error
        return path

    def closed_loop(self, every: int = 5, **options: Any) -> ClosedLoop:
        """Redesigns this design's run while it trains: ``run(design.config, redesign=...)``.

        H and E are chosen from those of the design, and the uplink from those that it compared. If
        energy counts, or masks are optimized in each round, the uplink stays.

        Args:
            every: R, global rounds between two redesigns.
            options: ``learn`` and ``least_gain`` of ``wirelessfl.ClosedLoop``.

        Raises:
            ConfigError: the design has no target, a limit, or a curve that no pilots are known of.
        """
        goal, curve, search = self.goal, self.choice.family.curve, self.reports.search
        if goal.target is None or goal.limits:
            raise ConfigError(
                "redesigns have a target and no limits: give target, and leave max_seconds and "
                "max_client_joules out, or train the design once."
            )
        if self.choice.buffer is not None:
            raise ConfigError(
                "the design has asynchronous cells, whose merges are not redesigned: choose "
                'schedule "rounds", or train the design once.'
            )
        if self.choice.way.noise:
            raise ConfigError(
                f"the design is over {self.choice.way.name}, and redesigns know no errors of sums: "
                "choose among the uplinks tdma and ofdma, or train the design once."
            )
        if not isinstance(curve, RoundsCurve):
            raise ConfigError(
                "the design has a learning curve of your own: redesigns refit a curve to its "
                "pilots. Give one from wirelessfl.fit_rounds."
            )
        ways = [way for way in search.ways if not (way.saves or way.deadline or way.noise)]
        ways = [way for way in ways if way != self.choice.way]  # it is the configured one
        if self.choice.way.saves:  # no other bands are sooner, and the settings conflict
            ways = [way for way in ways if way.name != self.choice.way.name]
        if not self.choice.assigner().fixed_shapes:  # each cost takes rounds to be planned
            ways = []
        return ClosedLoop.of(
            curve,
            goal.target,
            local_steps=search.space.local_steps,
            edge_rounds=self.choice.family.edges(search.space),
            uplinks=[{}, *({"name": way.name, **way.settings} for way in ways)]
            if goal.seconds_only
            else [{}],
            objective=goal.weights,
            every=every,
            **options,
        )

    def table(self) -> str:
        """The prediction, what each choice bought, the runner-up and the front, as text."""
        from wirelessfl.codesign.design_tables import design_table

        return design_table(self)

    def plot(self) -> Figure:
        """A heat map over local steps and edge rounds, and seconds against joules."""
        from wirelessfl.codesign.pictures import design_figure

        return design_figure(self)

    def facts(self) -> dict[str, Any]:
        """The design as numbers and names, for JSON."""
        from wirelessfl.codesign.design_tables import design_facts

        return design_facts(self)
