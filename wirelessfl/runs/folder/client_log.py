"""The file ``clients.csv``: costs of each client in each round of a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from wirelessfl.air.client_costs import ClientCosts
from wirelessfl.air.plan import Plan
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import reading, writing
from wirelessfl.base.import_paths import expanded
from wirelessfl.engine.rounds.client_log import CHARGE, COLUMNS, WHOLE, ClientLog, entries
from wirelessfl.runs.folder.log import Log
from wirelessfl.runs.folder.run_folder import CLIENT_LOG, RunFolder
from wirelessfl.training.steps import StepCounts

HEADS = {",".join(names): names for names in (COLUMNS, (*COLUMNS, CHARGE))}
"""The columns of runs without and with batteries, by the first line of the file."""
FORMATS = {
    head: ",".join("%d" if name in WHOLE else "%.12g" for name in names) + "\n"
    for head, names in HEADS.items()
}
"""A line of each; 12 digits keep sums over thousands of rounds exact to 9 digits."""


class ClientLogFile:
    """Adds an entry for each participating client of a round.

    A checkpoint covers the beginning of the file; a resumed run removes the rest.

    Args:
        path: the file.
        radio: whether updates cross the radio channel; otherwise entries have no SNR.
        steps: returns the number of local steps of each client.
    """

    def __init__(self, path: Path, radio: bool, steps: Callable[[], StepCounts]) -> None:
        self.radio, self.steps = radio, steps
        self.entries = 0
        self._file = Log(path, RunFolder(path.parent).remedy)

    def add(self, plan: Plan, trial: bool) -> None:
        """Append the entries of a round.

        Args:
            plan: the round.
            trial: whether it is a trial round.

        Raises:
            NotWrittenError: the file cannot be written.
        """
        self.entries += 1
        costs, round_ = ClientCosts.of(plan), plan.round + 1
        table = entries(costs, self.entries, round_, trial, self.radio, self.steps())
        head, names = [*HEADS.items()][CHARGE in table]
        columns = (table[name].tolist() for name in names)
        lines = [FORMATS[head] % row for row in zip(*columns, strict=True)]
        with writing(self._file.path, self._file.path.parent):
            if not self._file.length:
                lines.insert(0, head + "\n")
            self._file.append("".join(lines).encode())

    def snapshot(self) -> list[int]:
        """What a checkpoint covers: bytes, checksum and number of rounds, all on disk."""
        self._file.to_disk()
        return [*self._file.covered, self.entries]

    def restore(self, covered: list[int]) -> None:
        """Continue from a checkpoint; later entries are removed.

        Raises:
            ConfigError: covered entries are missing or changed.
        """
        size, checksum, self.entries = covered
        self._file.check(size, checksum)
        self._file.cut(size)


def read_client_log(folder: str | Path) -> ClientLog:
    """Read the client log of a run, also of one that is not finished.

    >>> import wirelessfl
    >>> settings = wirelessfl.Config.from_flags(
    ...     "fedavg", clients=4, rounds=2, client_log=True, out="my-other-logged-run"
    ... )
    >>> _ = wirelessfl.run(settings)
    >>> wirelessfl.read_client_log("my-other-logged-run")["client"].tolist()
    [0, 1, 2, 3, 0, 1, 2, 3]

    Args:
        folder: folder of a run with ``client_log=True``.

    Returns:
        The entries by column; ``lines()`` is a summary as text.

    Raises:
        ConfigError: the run has no client log, or the file is damaged.
    """
    path = expanded(folder) / CLIENT_LOG
    if not os.path.lexists(path):
        raise ConfigError(
            f"{folder} has no {CLIENT_LOG}: give the folder of a run with --client-log."
        )
    log = Log(path, RunFolder(path.parent).remedy)
    with reading(path, log.remedy):
        head, *lines = log.read().decode().split("\n")[:-1] or [next(iter(HEADS))]
        names = HEADS.get(head)
        if names is None:
            raise ValueError("it has other columns")
        shape = len(lines), len(names)
        values = np.loadtxt(lines, delimiter=",", ndmin=2) if lines else np.empty(shape)
        if values.shape != shape:
            raise ValueError("a line is incomplete")
    state = RunFolder(path.parent).state()
    if state is not None and state.get("client_log") is not None:
        size, checksum, _ = state["client_log"]
        log.check(size, checksum, whole=state["finished"])
    return ClientLog(
        {
            name: column.astype(np.int64 if name in WHOLE else float)
            for name, column in zip(names, values.T, strict=True)
        }
    )
