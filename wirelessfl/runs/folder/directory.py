"""The folder of a run: ``config.toml``, ``about.json``, ``rows.jsonl`` and a checkpoint.

Its files stay valid even if the process is killed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import (
    NotWrittenError,
    open_stored,
    reading,
    remove_drafts,
    replacing,
    stored_size,
    writing,
)
from wirelessfl.base.import_paths import SUFFIX, absolute, module_of
from wirelessfl.base.sources import source_hashes
from wirelessfl.config import Config
from wirelessfl.config.named import Trust, import_paths
from wirelessfl.config.stored import check_stored
from wirelessfl.config.tables import read_toml
from wirelessfl.engine.server.client_states import LOG, check_log
from wirelessfl.runs.folder.about import NOTES, ROWS_SCHEMA, AboutFile, hashes_at_start
from wirelessfl.runs.folder.checkpoint import CHECKPOINT as CHECKPOINT
from wirelessfl.runs.folder.checkpoint import RunCheckpoint
from wirelessfl.runs.folder.identity import fingerprint_of, named_hashes
from wirelessfl.runs.folder.log import Log, Row, read_rows

try:
    import fcntl
except ImportError:  # not a POSIX system: folders of runs are not locked
    fcntl = None  # type: ignore[assignment]

NETWORK, PARTITION = "network", "partition"
"""Names of files of arrays: the given network, and the samples of each client."""
TRACKER_IDS = "trackers.json"
"""What trackers call the run, by package."""
CLIENT_LOG = "clients.csv"
"""The client log, if ``client_log`` is set."""


def _replaced(value: Any, old: str, new: str) -> Any:
    """A value of TOML, in which one string replaces another."""
    if isinstance(value, dict):
        return {key: _replaced(one, old, new) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, old, new) for one in value]
    return new if value == old else value


class InUseError(ConfigError):
    """The folder contains a run already, or another process executes it."""


@contextmanager
def alone_in(path: Path) -> Iterator[None]:
    """Wait until no other process starts a run in the folder ``path``, where locks are possible."""
    with ExitStack() as stack:
        if fcntl is not None:
            with suppress(OSError):  # some network file systems have no locks of folders
                folder = os.open(path, os.O_RDONLY)
                stack.callback(os.close, folder)
                fcntl.flock(folder, fcntl.LOCK_EX)
        yield


def array_files(path: Path) -> list[Path]:
    """Files of arrays in a folder, also unfinished ones."""
    return [*path.glob(f"{NETWORK}.npz*"), *path.glob(f"{PARTITION}*.npz*")]


class RunDirectory:
    """The folder of one run.

    Rows are appended. A checkpoint stores how many bytes of rows it covers and their checksum; a
    resumed run truncates later rows.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._remedy = f"Restore it, or start a new run: {self.command}"
        self.about_file = AboutFile(path / "about.json", self._remedy)
        self.checkpoint_file = RunCheckpoint(path, self._remedy)
        self.log = Log(path / "rows.jsonl", self._remedy)
        self.new = False
        """Whether the folder was created for this run."""

    @staticmethod
    def holds_run(path: Path) -> bool:
        """Whether a folder is that of a run."""
        return os.path.isfile(path / "config.toml")  # False, too, for a path that cannot be

    def remove(self) -> None:
        """Remove the files of a run that has failed at its start, and its folder if it was new."""
        files = (
            self.path / "config.toml",
            self.about_file.path,
            self.log.path,
            self.checkpoint_file.path,
            self.path / TRACKER_IDS,
        )
        best = self.path.glob("*best.safetensors")
        for file in (*files, *array_files(self.path), *self.logs(), *best):
            file.unlink(missing_ok=True)
        for folder in ("tensorboard", "wandb"):
            shutil.rmtree(self.path / folder, ignore_errors=True)
        if self.new:
            with suppress(OSError):  # another program has written into it
                self.path.rmdir()

    def logs(self) -> list[Path]:
        """The files of client states, and the client log."""
        log = self.path / CLIENT_LOG
        return [*sorted(self.path.glob("*clients-*.log")), *([log] if os.path.lexists(log) else [])]

    @classmethod
    def open(cls, path: Path, trust: Trust) -> tuple[RunDirectory, Config]:
        """Open the folder of an existing run, and read its configuration.

        Args:
            path: the folder.
            trust: whether the configuration may name code to import.

        Raises:
            ConfigError: it is not a run directory, an incompatible version of the package started
                it, its checkpoint or settings are invalid, or it names code without being trusted.
        """
        file, directory = path / "config.toml", cls(path)
        if not cls.holds_run(path):
            raise ConfigError(
                f"{path} is not a run directory (no config.toml). Give the folder of a run, as "
                "printed at its end."
            )
        # Other versions may have other settings.
        directory.checkpoint_file.check_version(directory.command)
        tables = read_toml(file, trust, stored=True)
        check_stored(tables, file)
        tables = directory._with_code_here(tables)
        try:
            return directory, Config.of(tables)
        except ConfigError as error:
            raise ConfigError(
                f"{file}: {error} If another version of wirelessfl wrote it, start a new run."
            ) from error

    def _with_code_here(self, tables: dict[str, Any]) -> dict[str, Any]:
        """The settings, in which equal files of the current folder replace missing ones of code.

        The folder may be on another machine, where the paths of files differ.
        """
        for setting, path in import_paths(tables):
            place, _, name = path.rpartition(":")
            if not place.endswith(SUFFIX) or os.path.exists(place):
                continue
            here = Path(place).name
            before = hashes_at_start(self.about(), f"{setting} {path}")
            if not os.path.isfile(here) or before not in (None, source_hashes(module_of(here))):
                differs = ", and that in the current folder differs" if os.path.isfile(here) else ""
                raise ConfigError(
                    f"{self.path / 'config.toml'}: {setting} is {path!r}: there is no such file"
                    f"{differs}. Copy {here} as it was when the run began into the current folder, "
                    "with the modules that it imports."
                )
            tables = _replaced(tables, path, absolute(f"{here}:{name}"))
        return tables

    def fingerprint(self) -> dict[str, str]:
        """Hash of the settings in ``config.toml``."""
        return fingerprint_of(read_toml(self.path / "config.toml", trust=True, stored=True))

    def changed_files(self, config: Config) -> str:
        """The first setting whose code or files differ from those of the run, and the file.

        Only settings that have hashes now and had them when the run began are compared.

        Returns:
            For example "model m:make: m.py"; empty if nothing differs.

        Raises:
            ConfigError: ``about.json`` is damaged.
        """
        current = named_hashes(config)
        began = self.about() if current else {}
        for setting, hashes in current.items():
            before = hashes_at_start(began, setting) or hashes
            for file in sorted({*before, *hashes}):
                if before.get(file) != hashes.get(file):
                    return f"{setting}: {file}"
        return ""

    @property
    def command(self) -> str:
        """The command of a new run with the settings of this one."""
        return f"wirelessfl run --config {self.path / 'config.toml'} --out NEW"

    def about(self) -> dict[str, Any]:
        """The entries of ``about.json``.

        Raises:
            ConfigError: the file is missing or damaged.
        """
        return self.about_file.entries()

    def notes(self) -> tuple[str, ...]:
        """The notes on the run, or that ``about.json`` is missing or damaged."""
        try:
            return tuple(self.about().get(NOTES, ()))
        except ConfigError as error:
            return (str(error),)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Lock the folder, so that no other process executes the run.

        Raises:
            InUseError: another process has locked the folder.
        """
        with open_stored(self.path / "config.toml") as file:
            try:
                if fcntl is not None:  # the lock is released when the process ends, even if killed
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InUseError(
                    f"another process is using the run in {self.path}. Wait until it ends."
                ) from None
            remove_drafts(self.path)
            yield

    def wait(self) -> None:
        """Wait until no other process executes the run."""
        with open_stored(self.path / "config.toml") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)

    def append(self, row: Row) -> None:
        """Append one row; if the process is killed here, ``resume`` removes the incomplete line.

        Raises:
            NotWrittenError: the file cannot be written, or files of the run are gone.
        """
        with writing(self.log.path, self.path):
            self._check_kept()
            self.log.append((json.dumps(row) + "\n").encode())

    def _check_kept(self) -> None:
        """Check that the folder of a run that is training is still there, with all its rows."""
        if not self.holds_run(self.path) or self.log.length != self.log.covered[0]:
            raise NotWrittenError(
                f"the folder {self.path} has been removed, moved or changed while its run was "
                "training. Restore the folder and resume the run, or start a new run."
            )

    def save(self, tensors: dict[str, torch.Tensor], state: dict[str, Any]) -> None:
        """Write a checkpoint that covers all current rows.

        Raises:
            NotWrittenError: it cannot be written, and the last one remains; or files of the run are
                gone.
        """
        with writing(self.checkpoint_file.path, self.path):
            self._check_kept()
            self.log.to_disk()
            size, checksum = self.log.covered
            content = {**state, "rows_bytes": size, "rows_checksum": checksum}
            self.checkpoint_file.write(tensors, content)

    def load(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]] | None:
        """Tensors and state of the checkpoint; None if none has been written yet.

        Raises:
            ConfigError: the checkpoint is damaged, or missing although the run has made progress.
        """
        if not self.checkpoint_file.exists():
            for file in (self.log.path, *self.logs()):
                if not os.path.lexists(file):
                    continue
                with reading(file, self._remedy):
                    size = stored_size(file)
                if size:
                    raise ConfigError(
                        f"{self.checkpoint_file.path} is missing, but there is {file.name}, which "
                        f"cannot be continued without it. {self._remedy}"
                    )
            return None
        return self.checkpoint_file.read()

    def load_params(
        self, selected: Callable[[str], bool]
    ) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Some tensors of the checkpoint, and its state.

        Args:
            selected: which tensors to return, by name.

        Raises:
            ConfigError: there is no checkpoint, it is damaged, or of another version.
        """
        if not self.checkpoint_file.exists():
            raise ConfigError(f"the run in {self.path} has no checkpoint yet, so no parameters.")
        self.checkpoint_file.check_version(self.command)
        return self.checkpoint_file.read_some(selected)

    def snapshot(self) -> tuple[dict[str, Any] | None, list[Row]]:
        """State of the checkpoint and all rows, also of a run that is training; changes nothing.

        Raises:
            ConfigError: a file is damaged, or another version of the package wrote the rows.
        """
        state = self.checkpoint_file.state()  # before the rows, which only grow
        if state is None:
            return None, self.rows()
        if state.get("schema") != ROWS_SCHEMA:
            raise ConfigError(
                f"{self.path} has rows of schema {state.get('schema')}, but this version of "
                f"wirelessfl reads {ROWS_SCHEMA}. {self._remedy}"
            )
        rows, covered = self.rows(), (state.get("rows_bytes"), state.get("rows_checksum"))
        if covered[0] is not None and covered[1] is not None:  # not in early versions
            self.log.check(covered[0], covered[1], whole=state["finished"])
        return state, rows

    def replace_config(self, text: str) -> None:
        """Replace ``config.toml`` atomically."""
        file = self.path / "config.toml"
        with writing(file, self.path), replacing(file) as draft:
            draft.write_text(text, encoding="utf-8")

    def rows(self) -> list[Row]:
        """All rows, without an incomplete last line.

        Raises:
            ConfigError: the file or a line is damaged.
        """
        return read_rows(self.log)

    def check_rows(self, state: Mapping[str, Any]) -> list[Row]:
        """Check and read the rows that a checkpoint covers.

        Args:
            state: state of the checkpoint.

        Raises:
            ConfigError: rows are missing, damaged or changed, or there are more than a finished run
                has written.
        """
        size, checksum = state["rows_bytes"], state["rows_checksum"]
        rows = read_rows(self.log, size)  # its errors name a line
        self.log.check(size, checksum, whole=state["finished"])
        return rows

    def check_logs(self, tensors: Mapping[str, torch.Tensor], *, titled: bool) -> None:
        """Check the client states on disk that a checkpoint refers to.

        Args:
            tensors: tensors of the checkpoint.
            titled: whether tasks have tables, and the names of logs those of tasks.

        Raises:
            ConfigError: a client state is missing or damaged.
        """
        for name in tensors:
            if name.endswith(LOG):
                prefix = name.removesuffix(LOG)
                mark = f"{prefix.partition('.')[0]}-" if titled else ""
                part = {
                    n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)
                }
                with reading(self.checkpoint_file.path, self._remedy):  # or else of the log
                    check_log(self.path, mark, part)
