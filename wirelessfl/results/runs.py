"""A sequence of stored runs: selection, groups, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from channels.notes import Notes
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.figures.curves import StyleName
from wirelessfl.base.packages import pandas
from wirelessfl.base.wording import shown
from wirelessfl.config.stored import plain
from wirelessfl.results.given_networks import settings_of
from wirelessfl.results.panels import plotted_against
from wirelessfl.results.selection import (
    Case,
    cases_of,
    check_names,
    check_types,
    matches,
    names_of,
    seeds_of,
    telling,
)
from wirelessfl.results.tables import Table, summarised
from wirelessfl.runs.plots import Log, plotted, relabelled
from wirelessfl.runs.result import RunResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Runs(Sequence[RunResult]):
    """Stored runs, from ``wirelessfl.load_all``; settings have the names of their flags.

    >>> import wirelessfl
    >>> varied = {"clients": [4, 8], "rounds": 1, "seed": [1, 2]}
    >>> configs = wirelessfl.combinations("fedavg", varied)
    >>> runs = wirelessfl.results.Runs(wirelessfl.sweep(configs, root="my-four-runs"))
    >>> len(runs.where(clients=4)), runs.varied
    (2, ['clients'])
    >>> [*runs.by("clients")]
    [4, 8]

    Args:
        runs: the runs.

    Raises:
        ConfigError: one of them is not a result.
    """

    _none = "there are no runs"  # or those that ``where`` has looked for

    def __init__(self, runs: Iterable[RunResult]) -> None:
        self._runs = tuple(runs)
        for place, run in enumerate(self._runs):
            if not isinstance(run, RunResult):
                raise ConfigError(
                    f"runs[{place}] is {shown(run)}: give results of runs. wirelessfl.load_all "
                    "reads those in folders."
                )

    @overload
    def __getitem__(self, place: int) -> RunResult: ...
    @overload
    def __getitem__(self, place: slice) -> Runs: ...
    def __getitem__(self, place: int | slice) -> RunResult | Runs:
        """The run at a place, or the runs of a slice."""
        return Runs(self._runs[place]) if isinstance(place, slice) else self._runs[place]

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[RunResult]:
        return iter(self._runs)

    def __repr__(self) -> str:
        """One line: number of runs, algorithms, and settings that differ."""
        number = "1 run" if len(self) == 1 else f"{len(self)} runs"
        labels = dict.fromkeys(run.label for run in self)
        open_runs = sum(not run.finished for run in self)
        facts = [f"{len(set(seeds_of(self)))} seeds"] if len(set(seeds_of(self))) > 1 else []
        if names := [name for name in self.varied if name != "algorithm"]:
            facts.append(f"differ in {', '.join(names)}")
        facts += [f"{open_runs} unfinished"] if open_runs else []
        return "; ".join([f"{number}: {', '.join(labels) or 'none'}", *facts])

    def _repr_html_(self) -> str:
        """The table of all groups, for notebooks."""
        return self.table()._repr_html_() if len(self) else repr(self)

    @property
    def varied(self) -> list[str]:
        """Settings that tell runs apart, besides seeds; others that differ follow from them."""
        return telling(self._settings)

    @cached_property
    def _settings(self) -> list[dict[str, Any]]:
        """The settings of each run, with numbers of the network that was given to it."""
        return [settings_of(run) for run in self]

    def where(self, *tests: Callable[[RunResult], bool], **settings: Any) -> Runs:
        """The runs with these settings.

        Args:
            tests: functions of a run that must be true, e.g. ``lambda run: run.finished``.
            settings: values by flag name, e.g. ``algorithm="hist", cells=2``; a list or a set means
                any of its values, and None that the setting has no effect.

        Raises:
            ConfigError: a name is unknown, or a test is not a function.
        """
        for test in tests:
            if not callable(test):
                raise ConfigError(
                    f"test is {shown(test)}: give a function of a run, or settings by name, such "
                    "as cells=2."
                )
        check_names(settings, self._settings)
        check_types(settings, self._settings)
        chosen = Runs(
            run
            for run, own in zip(self, self._settings, strict=True)
            if all(matches(own.get(name), v) for name, v in settings.items())
            and all(test(run) for test in tests)
        )
        if settings:
            chosen._none = f"no run has {', '.join(f'{n}={shown(v)}' for n, v in settings.items())}"
        return chosen

    def by(self, *names: str) -> dict[Any, Runs]:
        """The runs in groups of equal settings.

        Args:
            names: settings by flag name; ``by("algorithm", "lr")`` is ``by("algorithm,lr")``.

        Returns:
            The runs of each value; with several names, of each tuple of values. Groups are in the
            order of their first runs. Lists are keys as tuples.

        Raises:
            ConfigError: no name is given, or one is unknown.
        """
        if not names:
            raise ConfigError('no setting to group by: name some, such as by("algorithm").')
        settings_names = names_of(names)
        check_names(settings_names, self._settings)
        groups: dict[Any, list[RunResult]] = {}
        for run, settings in zip(self, self._settings, strict=True):
            key = tuple(_key(settings.get(name)) for name in settings_names)
            groups.setdefault(key[0] if len(key) == 1 else key, []).append(run)
        return {key: Runs(runs) for key, runs in groups.items()}

    def cases(self, by: str | Sequence[str] | None = None, *further: str) -> list[Case]:
        """Groups of runs with equal settings, one per task, with their labels.

        Args:
            by: settings that distinguish groups, by flag name: ``"algorithm"``, a list of several,
                or ``"algorithm,lr"``; None for all in which runs differ. Numbers of networks that
                were given to runs, such as bandwidth_hz, count as settings.
            further: further settings.

        Raises:
            ConfigError: there are no runs, or a name is unknown.
        """
        if not len(self):
            raise ConfigError(f"{self._none}: select others.")
        return cases_of(list(self), names_of(by, *further) if further else by)

    def table(
        self,
        by: str | Sequence[str] | None = None,
        *further: str,
        target: float | None = None,
        field: str | None = None,
        sort: str | None = None,
        tests: int = 1,
    ) -> Table:
        """Final accuracy and costs of each group: mean and range over its runs.

        Args:
            by: settings that distinguish groups, see ``cases``: ``table("algorithm", "lr")``,
                ``table("algorithm,lr")`` and ``table(by=["algorithm", "lr"])`` are the same.
            further: further settings.
            target: value of ``field`` that runs should reach; None for the target of the runs, if
                all have the same, else the costs are those of whole runs.
            field: field of rows that the target refers to; None for the accuracy, on validation
                samples if all runs have them. Smaller losses are better.
            sort: seconds, rounds, mib or joules: groups in which more runs reach the target come
                first, then those with lower means. By default seconds; without a target, groups of
                higher accuracy come first.
            tests: number of tests that are averaged, for the target and the final accuracy.

        Raises:
            ConfigError: there are no runs, a name is unknown, or a run has no rows.
        """
        return summarised(self.cases(by, *further), target, field, sort, tests)

    def plot(
        self,
        x: str = "seconds",
        y: str | None = None,
        *,
        by: str | Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        target: float | None = None,
        log: Log = "",
        smooth: int = 1,
        style: StyleName = "screen",
    ) -> Figure:
        """Plot one curve per group: the mean over its runs, and their range as a shaded area.

        Args:
            x: rounds, seconds, mib, joules, wall, or another field of the rows.
            y: accuracy, loss, or another field; None for the accuracy or, in regression, the loss.
            by: settings that distinguish groups, by flag name; None for all in which runs differ.
            labels: text of groups in the legend, by the label that they have without it, such as
                ``{"allocation equal": "equal bands"}``.
            target: value of ``y`` to mark with a line; an accuracy is in [0, 1].
            log: axes with a logarithmic scale: x, y or xy.
            smooth: number of successive rows that are averaged for each point, odd.
            style: "ieee" for print in one column, "screen" for slides and notebooks.

        Raises:
            ConfigError: there are no runs, or a name or label is unknown.
            ValueError: a run has no rows, none has the field, or an option is wrong.
        """
        cases = self.cases(by)
        Notes()(*(f"{note}." for case in cases for note in case.notes))
        curves = {case.title: [rows for rows in case.rows if rows] for case in cases}
        curves = {name: rows for name, rows in curves.items() if rows}
        return plotted(
            relabelled(curves, labels or {}),
            x,
            y,
            target=target,
            log=log,
            smooth=smooth,
            style=style,
        )

    def plot_against(
        self,
        setting: str,
        *,
        target: float | None = None,
        cost: str = "seconds",
        field: str | None = None,
        by: str | Sequence[str] | None = None,
        tests: int = 1,
        log: Log = "",
        style: StyleName = "screen",
    ) -> Figure:
        """Plot final values, or costs until a target, against a setting: one line per other group.

        Points are means over the seeds, which are dots. Where only some runs reach the target, an
        arrow points up from a lower bound of the mean; where none does, it is in a band at the top.

        Args:
            setting: setting on the horizontal axis, by flag name.
            target: value of ``field`` that runs should reach; None for the final values.
            cost: seconds, rounds, mib or joules until the target.
            field: field of rows; None for the accuracy, see ``table``.
            by: settings that distinguish lines; None for all in which runs differ.
            tests: number of tests that are averaged.
            log: axes with a logarithmic scale: x, y or xy. A horizontal axis of numbers that span
                a factor of eight has one anyway.
            style: "ieee" for print in one column, "screen" for slides and notebooks.

        Raises:
            ConfigError: there are no runs, a name is unknown, or a run has no rows.
        """
        check_names([setting], self._settings)
        names = self.varied if by is None else names_of(by)
        cases = self.cases([*(name for name in names if name != setting), setting])
        return plotted_against(
            cases, setting, target=target, cost=cost, field=field, tests=tests, log=log, style=style
        )

    def report(
        self,
        path: str | Path,
        *,
        by: str | Sequence[str] | None = None,
        targets: float | Sequence[float] | None = None,
        field: str | None = None,
        tests: int = 1,
    ) -> Path:
        """Write one HTML file with curves, costs of targets, clients and settings of the runs.

        It loads nothing from elsewhere; readers choose axes, curves and runs in it. Needs bokeh.

        Args:
            path: the file, .html, in an existing folder.
            by: settings that distinguish groups, by flag name; None for all in which runs differ.
            targets: values of ``field`` whose costs are tabulated; None for the target of the runs,
                and values on the way to the best one.
            field: field of rows that targets refer to; None for the accuracy, see ``table``.
            tests: number of tests that are averaged, for targets and final values.

        Returns:
            The file.

        Raises:
            ConfigError: there are no runs, they train different tasks, or an argument is wrong.
            ImportError: bokeh is not installed.
        """
        from wirelessfl.results.report import checked_output, write_report  # loads what prices do

        file = checked_output(path)
        return write_report(self.cases(by), file, targets, field, tests)

    def to_rows(self) -> list[dict[str, Any]]:
        """All rows, each with the folder and seed of its run and the settings that differ."""
        names = self.varied
        return [
            {
                "folder": str(run.directory),
                "seed": run.settings["seed"],
                **{name: plain(settings.get(name)) for name in names},
                **row,
            }
            for run, settings in zip(self, self._settings, strict=True)
            for row in run.rows
        ]

    def to_pandas(self) -> Any:
        """All rows as a ``pandas.DataFrame``, see ``to_rows``.

        Raises:
            ImportError: pandas is not installed.
        """
        return pandas().DataFrame(self.to_rows())


def _key(value: Any) -> Any:
    """A value as a key of a dict."""
    return tuple(map(_key, value)) if isinstance(value, list) else value
