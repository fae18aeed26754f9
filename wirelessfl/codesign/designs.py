"""A design: a configuration, what it should take, and what its choices bought."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
