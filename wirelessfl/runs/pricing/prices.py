"""Costs of the rounds of a run: seconds, joules and traffic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from channels.arrays import FloatArray
from channels.summaries import ROWS, count_of, html_table
from wirelessfl.air.links import compared
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown


@dataclass(frozen=True, eq=False)
class Prices:
    """Costs of the rounds of a run.

    >>> import wirelessfl
    >>> prices = wirelessfl.price(wirelessfl.Config.from_flags("fedavg", clients=4, rounds=3))
    >>> prices.rows[-1]["round"], prices.ended
    (3, None)

    Args:
        rows: costs so far after each round, as in the rows of the run: ``round``, ``sim_seconds``,
            ``uplink_mib``, ``downlink_mib`` (means over the clients), ``backhaul_mib`` (mean over
            the edge servers), and ``joules`` (mean over the clients) unless they were left out. The
            first row is that of the initial model. Fields that compare with equal shares are those
            of the run. In sessions, rows also have ``session`` and
            ``session_round``, the first model of each session has a row, and ``extra_seconds``
            are those of the warm starts. Those of tasks have ``task``, and the costs of all tasks
            so far.
        node_seconds: [rounds, nodes], duration of each round at each edge server, or at the server
            of a star; the slowest decides. With asynchronous cells, that of the cells that are
            merged, and NaN for the others. Of tasks, since the task's round or merge before.
        ended: why the run ends before its last round: no client has energy left, or is available.
    """

    rows: list[dict[str, Any]]
    node_seconds: FloatArray
    ended: str | None = None

    def __len__(self) -> int:
        return len(self.node_seconds)

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks; empty if the run has no tasks."""
        return list(dict.fromkeys(row["task"] for row in self.rows if "task" in row))

    def of(self, task: str) -> Prices:
        """The prices of one task's rounds, or merges.

        Raises:
            ConfigError: the run has no such task.
        """
        if task not in self.tasks:
            names = ", ".join(self.tasks) or "none"
            raise ConfigError(
                f"task is {shown(task)}: choose one of the tasks of the run, {names}."
            )
        rows = [row for row in self.rows if row["task"] == task]
        times = {row["round"]: row["sim_seconds"] for row in reversed(rows)}
        seconds = np.diff([times[number] for number in sorted(times)])
        return Prices(rows, seconds[:, None], self.ended)

    def __repr__(self) -> str:
        """One line: what all rounds cost together."""
        last = self.rows[-1]
        joules = f", {last['joules']:.4g} J" if "joules" in last else ""
        return (
            f"<Prices: {count_of(len(self), 'round')} in {last['sim_seconds']:.4g} s, "
            f"{last['uplink_mib']:.4g} MiB up{joules} per client>"
        )

    def _repr_html_(self) -> str:
        """A table of costs so far, for notebooks: the first rounds, or as many between them."""
        places = np.linspace(0, len(self.rows) - 1, min(len(self.rows), ROWS)).round().astype(int)
        shown = [self.rows[place] for place in places]
        names = {"task": ("task", "s"), "round": ("round", "d"), "sim_seconds": ("seconds", ".4g")}
        names |= {"uplink_mib": ("MiB up", ".4g"), "downlink_mib": ("MiB down", ".4g")}
        names |= {"joules": ("J", ".4g")}
        columns = {
            head: [format(row[name], form) for row in shown]
            for name, (head, form) in names.items()
            if all(name in row for row in shown)
        }
        return html_table(repr(self)[1:-1], columns)

    @cached_property
    def _at(self) -> dict[int, dict[str, Any]]:
        """The first row of each round: later ones include trial rounds of the next session."""
        if len(self.tasks) > 1:
            raise ConfigError(
                f"these are prices of several tasks, {', '.join(self.tasks)}: take those of one, "
                f"prices.of({self.tasks[0]!r})."
            )
        rows: dict[int, dict[str, Any]] = {}
        for row in self.rows:
            rows.setdefault(row["round"], row)
        return rows

    def at_round(self, number: int) -> dict[str, Any]:
        """Costs of the first ``number`` rounds, as in the row of the run.

        Raises:
            ConfigError: fewer rounds have been priced.
        """
        if number not in self._at:
            raise ConfigError(
                f"round is {shown(number)}, but there are prices of "
                f"{count_of(len(self), 'round')}: give an integer from 0 to {len(self)}, or price "
                "more rounds."
            )
        return self._at[number]

    def total(self, name: str) -> FloatArray:
        """Costs so far [rounds] after each round, by the name of a field of the rows."""
        return np.array([self._at[r][name] for r in range(1, len(self) + 1)], dtype=np.float64)

    def _each(self, name: str) -> FloatArray:
        return np.diff(self.total(name), prepend=0.0)

    @property
    def seconds(self) -> FloatArray:
        """Simulated seconds [rounds] from the end of the previous round to that of each round."""
        return self._each("sim_seconds")

    @property
    def uplink_mib(self) -> FloatArray:
        """Uplink traffic [rounds], mean over the clients."""
        return self._each("uplink_mib")

    @property
    def downlink_mib(self) -> FloatArray:
        """Downlink traffic [rounds], mean over the clients."""
        return self._each("downlink_mib")

    @property
    def backhaul_mib(self) -> FloatArray:
        """Backhaul traffic [rounds], mean over the edge servers."""
        return self._each("backhaul_mib")

    @property
    def joules(self) -> FloatArray:
        """Energy [rounds] for training and sending, mean over the clients.

        Raises:
            ConfigError: the prices were computed without joules.
        """
        if "joules" not in self.rows[0]:
            raise ConfigError("the prices have no joules: call price(...) with joules=True.")
        return self._each("joules")

    def summary(self) -> str:
        """A table: mean, smallest and largest cost of a round, and the total; one for each task."""
        if len(self.tasks) > 1:
            return "\n\n".join(f"{task}\n{self.of(task).summary()}" for task in self.tasks)
        names = {"seconds": "seconds", "joules": "joules per client"}
        names |= {"uplink_mib": "uplink MiB per client", "downlink_mib": "downlink MiB per client"}
        names |= {"backhaul_mib": "backhaul MiB per edge server"}
        if "joules" not in self.rows[0]:
            del names["joules"]
        if not len(self):
            return f"no round ends in {self.rows[-1]['sim_seconds']:.4g} s"
        lines = [
            f"{count_of(len(self), 'round'):28}{'mean':>12}{'min':>12}{'max':>12}{'total':>12}"
        ]
        for name, title in names.items():
            values = getattr(self, name)
            if name == "backhaul_mib" and not values.any():
                continue
            numbers = values.mean(), values.min(), values.max(), values.sum()
            lines.append(f"{title:28}" + "".join(f"{number:12.4g}" for number in numbers))
        if self.ended is not None:
            lines.append(f"ended after round {len(self)}: {self.ended}")
        bought = compared(self.rows[-1])
        if bought is not None:
            lines.append(bought)
        return "\n".join(lines)
