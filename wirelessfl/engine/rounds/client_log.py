"""The costs of clients in many rounds, and a summary: who is the straggler, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from channels.arrays import FloatArray
from wirelessfl.air.client_costs import ClientCosts
from wirelessfl.base.wording import count_of
from wirelessfl.training.steps import StepCounts

WHOLE = (
    "entry", "round", "trial", "client", "cell", "steps", "arrived", "last_in_cell", "straggler",
)  # fmt: skip
"""Columns of integers."""
COLUMNS = (
    "entry", "round", "trial", "client", "cell", "snr_db", "rate_bps", "download_seconds",
    "compute_seconds", "wait_seconds", "send_seconds", "idle_seconds", "compute_joules",
    "send_joules", "steps", "arrived", "last_in_cell", "straggler",
)  # fmt: skip
"""All columns, in the order of the file."""
CHARGE = "charge_joules"
"""A last column of runs with batteries."""
PARTS = ("download", "compute", "wait", "send", "idle")
"""How clients spend a round; each has a column of seconds."""
NAMES = {
    "download": "downloading",
    "compute": "computing",
    "wait": "waiting for their turn",
    "send": "sending",
    "idle": "idle",
}
"""The same in words."""
MANY = 3
"""Maximum number of stragglers that a text names."""


@dataclass(frozen=True, eq=False)
class ClientLog:
    """What rounds cost each participating client; one entry per client and global round.

    >>> import wirelessfl
    >>> settings = wirelessfl.Config.from_flags(
    ...     "fedavg", clients=4, rounds=2, dataset="digits", client_log=True, out="my-logged-run"
    ... )
    >>> _ = wirelessfl.run(settings)
    >>> log = wirelessfl.read_client_log("my-logged-run")
    >>> log, log.summary()["rounds"]
    (<ClientLog: 8 entries of 4 clients in 2 rounds>, 2)

    Args:
        columns: arrays of equal length by name, see ``COLUMNS``: ``entry`` counts the rounds of the
            log from 1, ``round`` is that of the run's rows (of the session's trial rounds where
            ``trial`` is 1, of the cell's own rounds with asynchronous cells), and ``cell`` the one
            that served the client. Seconds, joules, ``steps`` and ``arrived`` updates are sums over
            the edge rounds; the seconds of a client sum to the duration of the round. ``snr_db`` is
            the mean SNR of the drawn channels over the whole band of the cell with all antennas,
            NaN without a radio, and ``rate_bps`` the bits sent over the seconds of sending.
            ``last_in_cell`` counts the edge rounds in which the client is the last of its cell;
            ``straggler`` is 1 for the client of the slowest cell for which the round waits, or for
            several that end together. With batteries, ``charge_joules`` is the charge that the
            round leaves in the client's.
    """

    columns: Mapping[str, NDArray[Any]]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A column."""
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns["client"])

    @property
    def rounds(self) -> int:
        """Number of rounds, trial rounds included."""
        return len(np.unique(self["entry"]))

    def __repr__(self) -> str:
        clients = count_of(len(np.unique(self["client"])), "client")
        rounds = count_of(self.rounds, "round")
        return f"<ClientLog: {len(self)} entries of {clients} in {rounds}>"

    def to_pandas(self) -> Any:
        """The columns as a ``pandas.DataFrame``.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise ImportError(
                "to_pandas needs pandas: pip install pandas, or use the arrays in columns."
            ) from error
        return pandas.DataFrame(dict(self.columns))

    @property
    def handovers(self) -> int:
        """Number of entries in which a client is in another cell than in its entry before."""
        order = np.lexsort((self["entry"], self["client"]))
        client, cell = self["client"][order], self["cell"][order]
        return int(np.count_nonzero((np.diff(client) == 0) & (np.diff(cell) != 0)))

    def summary(self) -> dict[str, Any]:
        """Where the time goes.

        Returns:
            ``rounds``; ``seconds``, the mean duration of a round; ``cells``, per cell the mean
            fractions of a round in which its clients download, compute, wait for their turn, send
            and are idle, its mean joules per client and round, and the client that is last most
            often; and ``stragglers``, the clients for which the rounds wait: ``share``, the
            fraction of the rounds, and how they spend these. Most frequent ones come first.
        """
        cells = [self._cell(int(cell)) for cell in np.unique(self["cell"])]
        return {
            "rounds": self.rounds,
            "seconds": self._seconds_of_rounds(),
            "cells": cells,
            "stragglers": self._stragglers(),
        }

    @property
    def seconds(self) -> FloatArray:
        """Duration of the round of each entry: the client's seconds, all together."""
        return np.asarray(sum(self[f"{part}_seconds"] for part in PARTS))

    def _seconds_of_rounds(self) -> float:
        if not len(self):
            return 0.0
        _, first = np.unique(self["entry"], return_index=True)
        return float(self.seconds[first].mean())

    def _shares(self, chosen: NDArray[Any]) -> dict[str, float]:
        total = float(self.seconds[chosen].sum())
        return {
            part: float(self[f"{part}_seconds"][chosen].sum()) / total if total else 0.0
            for part in PARTS
        }

    def _cell(self, cell: int) -> dict[str, Any]:
        chosen = np.flatnonzero(self["cell"] == cell)
        clients, place = np.unique(self["client"][chosen], return_inverse=True)
        last = np.bincount(place, self["last_in_cell"][chosen], len(clients))
        joules = self["compute_joules"][chosen] + self["send_joules"][chosen]
        slow = int(last.argmax())
        # The seconds of the client that is last, without those in which it waits for other cells.
        return {
            "cell": cell,
            "clients": len(clients),
            **self._shares(chosen),
            "joules": float(joules.mean()),
            "last": int(clients[slow]) if last[slow] > 0 else None,
            "last_share": float(last[slow] / last.sum()) if last[slow] > 0 else 0.0,
        }

    def _stragglers(self) -> list[dict[str, Any]]:
        which = np.flatnonzero(self["straggler"] > 0)
        clients, counts = np.unique(self["client"][which], return_counts=True)
        order = np.lexsort((clients, -counts))
        stragglers = []
        for client, count in zip(clients[order].tolist(), counts[order].tolist(), strict=True):
            its = which[self["client"][which] == client]
            share = count / self.rounds
            stragglers.append(
                {
                    "client": client,
                    "cell": int(self["cell"][its[0]]),
                    "share": share,
                    **self._shares(its),
                }
            )
        return stragglers

    def lines(self) -> list[str]:
        """The summary as text, one line each."""
        summary = self.summary()
        number = summary["rounds"]
        lines = [f"a round takes {summary['seconds']:.4g} s (mean of {number})"]
        for cell in summary["cells"]:
            parts = ", ".join(
                f"{100 * cell[part]:.0f} % {NAMES[part]}" for part in PARTS if cell[part] >= 5e-3
            )
            lines.append(f"cell {cell['cell']}: its clients spend {parts}")
        if self.handovers:
            lines.append(f"handovers: {self.handovers}")
        lines.append(self._straggler_line(summary["stragglers"]))
        return lines

    def _straggler_line(self, stragglers: list[dict[str, Any]]) -> str:
        together = sum(entry["share"] for entry in stragglers)
        if not stragglers:
            return "stragglers: none"
        if together > 2:  # e.g. with optimal bands
            return f"stragglers: none; {together:.0f} clients on average end a round together"
        phrases = []
        for entry in stragglers[:MANY]:
            part = max(PARTS, key=lambda name: entry[name])
            phrases.append(
                f"client {entry['client']} of cell {entry['cell']} in {100 * entry['share']:.0f} % "
                f"of rounds ({100 * entry[part]:.0f} % {NAMES[part].replace('their', 'its')})"
            )
        more = len(stragglers) - len(phrases)
        return "stragglers: " + "; ".join(phrases) + (f"; {more} more" if more else "")


def entries(
    costs: ClientCosts, entry: int, number: int, trial: bool, radio: bool, steps: StepCounts
) -> dict[str, NDArray[Any]]:
    """The entries of a round, [senders] by column; see ``ClientLog``.

    Args:
        costs: costs of the clients.
        entry: number of the round in the log, from 1.
        number: number of the round, from 1.
        trial: whether it is a trial round.
        radio: whether updates cross the radio channel; otherwise entries have no SNR.
        steps: number of local steps of each client.
    """
    columns: dict[str, NDArray[Any]] = dict(costs.columns())
    count = len(costs.clients)
    if not radio:
        columns["snr_db"] = np.full(count, np.nan)
    columns["steps"] = np.rint(steps.at(costs.clients) * costs.over_rounds(costs.trains)).astype(
        np.int64
    )
    for name, value in (("entry", entry), ("round", number), ("trial", int(trial))):
        columns[name] = np.full(count, value)
    return columns


def joined(parts: Sequence[Mapping[str, NDArray[Any]]]) -> ClientLog:
    """The log of several rounds, from the entries of each."""
    names = COLUMNS if not parts else [n for n in (*COLUMNS, CHARGE) if n in parts[0]]
    return ClientLog({name: np.concatenate([part[name] for part in parts]) for name in names})
