"""The folder of a run: ``config.toml``, ``about.json``, ``rows.jsonl`` and a checkpoint.

Its files stay valid even if the process is killed.
"""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from channels.notes import of_each_kind
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import (
    NotWrittenError,
    open_stored,
    reading,
    remove_drafts,
    replacing,
    writing,
)
from wirelessfl.base.stored_tensors import read_checkpoint, read_state, write_checkpoint
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.config.named import Trust, check_trust
from wirelessfl.config.stored import check_stored
from wirelessfl.config.synonyms import with_new_names
from wirelessfl.config.tables import read_toml
from wirelessfl.engine.server.client_states import check_logs
from wirelessfl.runs.folder.about import (
    COVERED,
    LAYOUT,
    NOTES,
    NUMERICS,
    STATE,
    checked,
    read_about,
    write_about,
)
from wirelessfl.runs.folder.identity import fingerprint_of
from wirelessfl.runs.folder.log import Log, Row
from wirelessfl.runs.folder.named_files import with_code_here

try:
    import fcntl
except ImportError:  # not a POSIX system: folders of runs are not locked
    fcntl = None  # type: ignore[assignment]

CONFIG, ABOUT, ROWS = "config.toml", "about.json", "rows.jsonl"
CHECKPOINT = "checkpoint.safetensors"
NETWORK, PARTITION = "network", "partition"
"""Names of files of arrays: the given network, and the samples of each client."""
TRACKER_IDS = "trackers.json"
"""What trackers call the run, by package."""
CLIENT_LOG = "clients.csv"
"""The client log, if ``client_log`` is set."""
BEGUN = (ABOUT, f"{NETWORK}.npz*", f"{PARTITION}*.npz*")
"""Files that are written before ``config.toml``, with which a run begins."""
LOGS = ("*clients-*.log", CLIENT_LOG)
"""Files of client states, and the client log."""
FILES = (CONFIG, *BEGUN, ROWS, CHECKPOINT, *LOGS, TRACKER_IDS, "*best.safetensors")
Tensors = dict[str, torch.Tensor]
State = dict[str, Any]


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


class RunFolder:
    """The folder of one run.

    Rows are appended. A checkpoint stores how many bytes of rows it covers and their checksum; a
    resumed run truncates later rows.

    A checkpoint also has a hash of the settings in ``config.toml``. That of an extension contains
    the settings with the later end, which replace those in ``config.toml`` when the run continues.

    Whatever reads a missing, damaged or changed file raises ``ConfigError``, which names the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.command = f"wirelessfl run --config {path / CONFIG} --out NEW"
        """The command of a new run with the settings of this one."""
        self.remedy = f"Restore it, or start a new run: {self.command}"
        self.config_file, self.about_file = path / CONFIG, path / ABOUT
        self.checkpoint_file = path / CHECKPOINT
        self.log = Log(path / ROWS, self.remedy)
        self.new = False
        """Whether the folder was created for this run."""
        self._opened: str | None = None
        """Hash of the settings with which the run was opened."""

    @staticmethod
    def holds_run(path: Path) -> bool:
        """Whether a folder is that of a run."""
        return os.path.isfile(path / CONFIG)  # False, too, for a path that cannot be

    def remove(self) -> None:
        """Remove the files of a run that has failed at its start, and its folder if it was new."""
        for file in self.files(*FILES):
            file.unlink(missing_ok=True)
        for folder in ("tensorboard", "wandb"):
            shutil.rmtree(self.path / folder, ignore_errors=True)
        if self.new:
            with suppress(OSError):  # another program has written into it
                self.path.rmdir()

    def files(self, *patterns: str) -> list[Path]:
        """Its files with names of these patterns."""
        return [file for pattern in patterns for file in sorted(self.path.glob(pattern))]

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Lock the folder, so that no other process executes the run, and complete an extension.

        Raises:
            InUseError: another process has locked the folder, or changed the settings.
        """
        with ExitStack() as stack:
            stack.enter_context(self._locked())
            remove_drafts(self.path)
            extends = self._extends(self.state())
            if extends is not None:
                self._replace_settings(extends["text"], extends["entry"])
                stack.enter_context(self._locked())  # another file
            if self._opened not in (None, self.fingerprint()):
                raise InUseError(
                    f"the settings of the run in {self.path} have changed meanwhile, as when "
                    "another process extends it. Resume it again."
                )
            yield

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open_stored(self.config_file) as file:
            try:
                if fcntl is not None:  # the lock is released when the process ends, even if killed
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.path.samestat(os.fstat(file.fileno()), os.stat(self.config_file)):
                    raise BlockingIOError  # replaced since it was opened
            except BlockingIOError:
                raise InUseError(
                    f"another process is using the run in {self.path}. Wait until it ends."
                ) from None
            yield

    def wait(self) -> None:
        """Wait until no other process executes the run."""
        with open_stored(self.config_file) as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)

    @classmethod
    def open(cls, path: Path, trust: Trust) -> tuple[RunFolder, Config]:
        """Open the folder of a run, and read its settings; ``trust`` says which code they may name.

        Missing files of code are replaced by those of the same names in the current folder.
        """
        folder = cls(path)
        if not cls.holds_run(path):
            raise ConfigError(
                f"{path} is not a run directory (no config.toml). Give the folder of a run, as "
                "printed at its end."
            )
        state = folder.state()  # another version may have other settings
        if state is not None and not state["finished"]:
            folder.check_numerics(folder._checked(state))
        tables = folder.tables(state, trust)
        folder._opened = fingerprint_of(tables)
        try:
            config = Config.of(with_code_here(with_new_names(tables)))
        except ConfigError as error:
            if state is not None:
                folder._checked(state)
            raise ConfigError(
                f"{folder.config_file}: {error} Restore it, or start a new run."
            ) from error
        return folder, config

    def tables(self, state: State | None, trust: Trust = True) -> dict[str, Any]:
        """The settings in ``config.toml``, or those of an extension that will replace them.

        They must be those that the checkpoint with this state knows. No code is imported, but
        without ``trust`` they may not name any.
        """
        extends = self._extends(state)
        if extends is None:
            tables = read_toml(self.config_file, trust, stored=True)
        else:
            with reading(self.checkpoint_file, self.remedy):
                tables = tomllib.loads(extends["text"])
            check_trust(with_new_names(tables), self.config_file, trust)
        check_stored(tables, self.config_file)
        began = None if state is None else state.get("fingerprint")
        if began is not None and began != fingerprint_of(tables):
            raise ConfigError(
                f"{self.path}: the settings in config.toml are not those of the original run. "
                "Restore them, or start a new run."
            )
        return tables

    def fingerprint(self) -> str:
        """Hash of the settings in ``config.toml``."""
        return fingerprint_of(read_toml(self.config_file, trust=True, stored=True))

    def extend(
        self, checkpoint: tuple[Tensors, State] | None, config: Config, entry: dict[str, Any]
    ) -> None:
        """Store settings with a later end, which are in force once a checkpoint has them.

        The folder is locked meanwhile.

        Args:
            checkpoint: what the run continues from; None to start from the beginning.
            config: the settings.
            entry: of the list ``extended`` in ``about.json``.

        Raises:
            NotWrittenError: they cannot be stored; the run is as before.
        """
        text = config.to_toml()
        fingerprint = fingerprint_of(tomllib.loads(text))
        with self.at_work():
            self._opened = fingerprint
            if checkpoint is None:
                self._replace_settings(text, entry)
                return
            tensors, state = checkpoint
            extends = {"began": self.fingerprint(), "text": text, "entry": entry}
            self._write(tensors, {**state, "fingerprint": fingerprint, "extends": extends})

    def _extends(self, state: State | None) -> dict[str, Any] | None:
        """The extension in a checkpoint, if ``config.toml`` still has the settings before it."""
        extends: dict[str, Any] | None = None if state is None else state.get("extends")
        return extends if extends and extends["began"] == self.fingerprint() else None

    def _replace_settings(self, text: str, entry: dict[str, Any]) -> None:
        """Replace ``config.toml``, and note the extension; can be repeated if it was killed."""
        if entry not in self.about().get("extended", []):
            self.note(extended=entry)
        with writing(self.config_file, self.path), replacing(self.config_file) as draft:
            draft.write_text(text, encoding="utf-8")

    def about(self) -> dict[str, Any]:
        """The entries of ``about.json``."""
        return read_about(self.about_file, self.remedy)

    def note(self, *notes: str, **entries: dict[str, Any]) -> None:
        """Add notes of a new kind to ``about.json``, and entries to its lists of these names."""
        about = self.about()
        lists = {name: [*about.get(name, []), entry] for name, entry in entries.items()}
        if notes:
            lists[NOTES] = of_each_kind([*about.get(NOTES, []), *notes])
        write_about(self.about_file, about | lists)

    def notes(self) -> tuple[str, ...]:
        """The notes on the run, or that ``about.json`` is missing or damaged."""
        try:
            return tuple(self.about().get(NOTES, ()))
        except ConfigError as error:
            return (str(error),)

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

    def rows(self, state: State | None = None) -> list[Row]:
        """The rows that the checkpoint with this state covers, after checking them.

        Without a state all of them, without an incomplete last line.
        """
        if state is None:
            return self.log.rows()
        rows = self.log.rows(state["rows_bytes"])  # its errors name a line
        self.check_rows(state)
        return rows

    def check_rows(self, state: State) -> None:
        """Check the rows that the checkpoint with this state covers."""
        self.log.check(state["rows_bytes"], state["rows_checksum"], whole=state["finished"])

    def save(self, tensors: Tensors, state: State) -> None:
        """Write a checkpoint that covers all current rows.

        Raises:
            NotWrittenError: it cannot be written, and the last one remains; or files of the run are
                gone.
        """
        with writing(self.checkpoint_file, self.path):
            self._check_kept()
            self.log.to_disk()
        size, checksum = self.log.covered
        state = {**state, "rows_bytes": size, "rows_checksum": checksum}
        self._write(tensors, {**state, "layout": LAYOUT, "numerics": NUMERICS})

    def _write(self, tensors: Tensors, state: State) -> None:
        with writing(self.checkpoint_file, self.path), replacing(self.checkpoint_file) as draft:
            write_checkpoint(draft, tensors, state)

    def state(self) -> State | None:
        """State of the checkpoint; None if none has been written yet.

        Of a run of another version, it has what reading the rows needs.
        """
        if not os.path.lexists(self.checkpoint_file):
            return None
        with reading(self.checkpoint_file, self.remedy):
            state = read_state(self.checkpoint_file)
            if state.get("layout") == LAYOUT:
                return self._checked(state)
            return checked(state, COVERED) | {"layout": state.get("layout")}

    def load(
        self, selects: Callable[[str], bool] = lambda name: True
    ) -> tuple[Tensors, State] | None:
        """Tensors, selected by name, and state of the checkpoint; None if there is none yet."""
        if os.path.lexists(self.checkpoint_file):
            with reading(self.checkpoint_file, self.remedy):
                tensors, state = read_checkpoint(self.checkpoint_file, selects)
                return tensors, self._checked(state)
        for file in self.files(ROWS, *LOGS):
            if Log(file, self.remedy).length:
                raise ConfigError(
                    f"{self.checkpoint_file} is missing, but there is {file.name}, which cannot be "
                    f"continued without it. {self.remedy}"
                )
        return None

    def _checked(self, state: State) -> State:
        """The state of a checkpoint of this version."""
        if state.get("layout") != LAYOUT:
            raise ConfigError(
                f"the run in {self.path} was written by another version of wirelessfl (layout "
                f"{shown(state.get('layout'))}, this version has {LAYOUT}). Start a new run: "
                f"{self.command}"
            )
        checked(state, STATE)
        return state

    def check_numerics(self, state: State) -> None:
        """Check that this version of the package has the same results as that of a checkpoint."""
        if state["numerics"] != NUMERICS:
            raise ConfigError(
                f"the run in {self.path} has numerics {state['numerics']}, but this version of "
                f"wirelessfl has {NUMERICS}: its results would differ. Start a new run: "
                f"{self.command}"
            )

    def check_logs(self, tensors: Mapping[str, torch.Tensor], *, titled: bool) -> None:
        """Check the client states on disk that a checkpoint with these tensors refers to."""
        with reading(self.checkpoint_file, self.remedy):  # or else of the log
            check_logs(self.path, tensors, titled=titled)
