"""The folder of a run: ``config.toml``, ``about.json``, ``rows.jsonl`` and a checkpoint.

Its files stay valid even if the process is killed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.runs.about import CHECKPOINT_LAYOUT, NUMERICS, ROWS_SCHEMA, about
from wirelessfl.runs.files import NotWrittenError, check_writable, draft_of, replacing

try:
    import fcntl
except ImportError:  # not a POSIX system: folders of runs are not locked
    fcntl = None  # type: ignore[assignment]

Row = dict[str, Any]


def _told(checkpoint: Any) -> dict[str, Any]:
    """The state in an open checkpoint.

    Raises:
        ValueError: it has none.
    """
    state = json.loads((checkpoint.metadata() or {}).get("state", "null"))
    if not isinstance(state, dict):
        raise ValueError("it has no state of a run")
    return state


class RunDirectory:
    """The folder of one run.

    Rows are appended. A checkpoint stores how many bytes of rows it covers; a resumed run truncates
    later rows.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._about_file = path / "about.json"
        self._rows_file = path / "rows.jsonl"
        self._checkpoint_file = path / "checkpoint.safetensors"
        self._made = False

    @classmethod
    def check_free(cls, path: Path) -> None:
        """Check that a folder is empty or missing, and writable.

        A draft of ``config.toml`` is ignored: the process that wrote it was killed before the run
        began.

        Raises:
            ConfigError: it is a file, not empty, or not writable.
        """
        check_writable(path)
        if cls.holds_run(path):
            raise ConfigError(
                f"out is {path}, which contains a run. Choose another folder, or resume this run: "
                f"wirelessfl resume {path}"
            )
        draft = draft_of(path / "config.toml")
        if path.exists() and any(file != draft for file in path.iterdir()):
            raise ConfigError(
                f"out is {path}: it is not an empty folder. Choose another folder, or empty it."
            )

    @staticmethod
    def holds_run(path: Path) -> bool:
        """Whether a folder is that of a run."""
        return os.path.isfile(path / "config.toml")  # False, too, for a path that cannot be

    @classmethod
    def create(
        cls,
        path: Path,
        config: Config,
        *,
        new: bool = False,
        entries: Mapping[str, Any] | None = None,
    ) -> RunDirectory:
        """Create the folder of a new run, with ``config.toml`` and ``about.json``.

        Args:
            path: the folder; created if it is missing.
            config: the configuration to store.
            new: whether the folder must not exist yet.
            entries: further entries of ``about.json``, such as counted step costs.

        Raises:
            ConfigError: the folder is not empty, or cannot be created.
            FileExistsError: ``new`` is set, and the folder exists.
        """
        text, told = config.to_toml(), about(config.run.device) | dict(entries or {})
        cls.check_free(path)
        directory = cls(path)
        directory._made = not path.exists()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(exist_ok=not new)
            with replacing(path / "config.toml") as draft:
                draft.write_text(text, encoding="utf-8")
            directory._write_about(told)
        except FileExistsError:
            raise
        except OSError as error:
            raise ConfigError(f"out is {path}: {error.strerror}. Choose another folder.") from error
        return directory

    def remove(self) -> None:
        """Remove the files of a run that has failed at its start, and its folder if it was new."""
        own = (self.path / "config.toml", self._about_file, self._rows_file, self._checkpoint_file)
        for file in (*own, *self.path.glob("*clients-*.log")):
            file.unlink(missing_ok=True)
        if self._made:
            with suppress(OSError):  # another program has written into it
                self.path.rmdir()

    @classmethod
    def open(cls, path: Path) -> tuple[RunDirectory, Config]:
        """Open the folder of an existing run, and read its configuration.

        Raises:
            ConfigError: it is not a run directory, an incompatible version of the package started
                it, or its checkpoint or settings are invalid.
        """
        file, directory = path / "config.toml", cls(path)
        if not cls.holds_run(path):
            raise ConfigError(
                f"{path} is not a run directory (no config.toml). Give the folder of a run, as "
                "printed at its end."
            )
        directory._check_version()  # other versions may have other settings
        try:
            return directory, Config.from_toml(file)
        except ConfigError as error:
            raise ConfigError(
                f"{file}: {error} If another version of wirelessfl wrote it, start a new run."
            ) from error

    @property
    def command(self) -> str:
        """The command of a new run with the settings of this one."""
        return f"wirelessfl run --config {self.path / 'config.toml'} --out NEW"

    def _check_version(self) -> None:
        """Check that this version of the package can resume from the checkpoint.

        Raises:
            ConfigError: the layout or the schema differs, the results would differ, or the
                checkpoint is damaged.
        """
        state = self._state()
        if state is None:
            return
        remedy = f"Start a new run: {self.command}"
        layout = state.get("layout", 1)  # layout 1 has no such entry
        if layout != CHECKPOINT_LAYOUT:
            age = "an earlier" if layout < CHECKPOINT_LAYOUT else "a later"
            raise ConfigError(
                f"the run in {self.path} was started with {age} version of wirelessfl (checkpoint "
                f"layout {layout}, this version reads {CHECKPOINT_LAYOUT}). {remedy}. That command "
                "names the settings that this version does not have."
            )
        if state.get("schema") != ROWS_SCHEMA:
            raise ConfigError(
                f"{self.path} has rows of schema {state.get('schema')}, but this version of "
                f"wirelessfl writes {ROWS_SCHEMA}. {remedy}"
            )
        if not state["finished"] and state["numerics"] != NUMERICS:
            raise ConfigError(
                f"the run in {self.path} was started with numerics {state['numerics']}, but this "
                f"version of wirelessfl has {NUMERICS}: its results would differ. {remedy}"
            )

    def _write_about(self, told: dict[str, Any]) -> None:
        with replacing(self._about_file) as draft:
            draft.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")

    def note_resumed(self, told: dict[str, Any]) -> None:
        """Add an entry to the list ``resumed`` in ``about.json``; other entries do not change.

        Args:
            told: the entry, from ``wirelessfl.runs.about``.

        Raises:
            ConfigError: the file is damaged.
        """
        try:
            exists = self._about_file.exists()
            first = json.loads(self._about_file.read_text(encoding="utf-8")) if exists else {}
            first["resumed"] = [*first.get("resumed", []), told]
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"{self._about_file} is damaged: {error}. Restore or remove it."
            ) from error
        self._write_about(first)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Lock the folder, so that no other process executes the run.

        Raises:
            ConfigError: another process has locked the folder.
        """
        with (self.path / "config.toml").open("rb") as file:
            try:
                if fcntl is not None:  # the lock is released when the process ends, even if killed
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError(
                    f"another process is using the run in {self.path}. Wait until it ends."
                ) from None
            yield

    def append(self, row: Row) -> None:
        """Append one row; if the process is killed here, ``resume`` removes the incomplete line.

        Raises:
            NotWrittenError: the file cannot be written.
        """
        with self._writing(self._rows_file), self._rows_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    @contextmanager
    def _writing(self, file: Path) -> Iterator[None]:
        """Name the file, and the way to go on, if the disk is full.

        Raises:
            NotWrittenError: the file cannot be written.
        """
        try:
            yield
        except (OSError, SafetensorError) as error:
            cause = getattr(error, "strerror", None) or error
            raise NotWrittenError(
                f"{file} cannot be written: {cause}. Free some space, and go on: wirelessfl resume "
                f"{self.path}"
            ) from error

    def rows(self) -> list[Row]:
        """All rows, without an incomplete last line.

        Raises:
            ConfigError: the file or a line is damaged.
        """
        if not self._rows_file.exists():
            return []
        try:
            lines = self._rows_file.read_text(encoding="utf-8").split("\n")[:-1]
        except (OSError, UnicodeError) as error:
            raise ConfigError(
                f"{self._rows_file} is damaged: {error}. Restore it, or start a new run: "
                f"{self.command}"
            ) from error
        rows = []
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                if not isinstance(row, dict) or "accuracy" not in row:
                    raise ValueError("it is not a row of a run")
            except (ValueError, RecursionError) as error:
                raise ConfigError(
                    f"{self._rows_file}, line {number} is damaged: {error}. Restore the line, or "
                    f"start a new run: {self.command}"
                ) from error
            rows.append(row)
        return rows

    def save(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Write a checkpoint that covers all current rows.

        Raises:
            NotWrittenError: it cannot be written; the last one remains.
        """
        size = 0
        if self._rows_file.exists():
            with self._rows_file.open("rb") as file:
                os.fsync(file.fileno())
                size = file.seek(0, os.SEEK_END)
        note = json.dumps({**state, "rows_bytes": size})
        with self._writing(self._checkpoint_file), replacing(self._checkpoint_file) as draft:
            contiguous = {name: value.contiguous().cpu() for name, value in tensors.items()}
            save_file(contiguous, draft, metadata={"state": note})
            # save_file lets only the owner read its file; some file systems have no permissions.
            with suppress(OSError):
                shutil.copymode(self._rows_file, draft)

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and state of the checkpoint; None if none has been written yet.

        Raises:
            ConfigError: the checkpoint is damaged, or missing although there are rows.
        """
        if not self._checkpoint_file.exists():
            if self._rows_file.exists() and self._rows_file.stat().st_size:
                raise ConfigError(
                    f"{self._checkpoint_file} is missing, but {self._rows_file.name} has rows, "
                    "which cannot be continued without it. Restore the checkpoint, or start a new "
                    f"run: {self.command}"
                )
            return None
        with self._checkpoint() as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, _told(file)

    def _state(self) -> dict[str, Any] | None:
        """State of the checkpoint without its tensors; None if none has been written yet.

        Raises:
            ConfigError: the checkpoint is damaged.
        """
        if not self._checkpoint_file.exists():
            return None
        with self._checkpoint() as file:
            return _told(file)

    @contextmanager
    def _checkpoint(self) -> Iterator[Any]:
        """Open the checkpoint.

        Raises:
            ConfigError: the checkpoint is damaged, or may not be read.
        """
        if not os.access(self._checkpoint_file, os.R_OK):
            raise ConfigError(f"{self._checkpoint_file} cannot be read: permission denied.")
        try:
            with safe_open(self._checkpoint_file, framework="pt") as file:
                yield file
        except (SafetensorError, OSError, TypeError, ValueError) as error:
            raise ConfigError(
                f"{self._checkpoint_file} is damaged: {error}. Start a new run with its settings: "
                f"{self.command}"
            ) from error

    def cut_rows(self, size: int) -> None:
        """Truncate the file of rows to ``size`` bytes.

        Raises:
            ConfigError: the file has fewer bytes.
        """
        if self.check_rows(size) > size:
            os.truncate(self._rows_file, size)

    def check_rows(self, size: int) -> int:
        """Number of bytes of the file of rows.

        Raises:
            ConfigError: they are fewer than ``size``.
        """
        there = self._rows_file.stat().st_size if self._rows_file.exists() else 0
        if there < size:
            raise ConfigError(
                f"{self._rows_file} has {there} bytes, but the checkpoint needs {size}: rows "
                f"are lost. Start a new run: {self.command}"
            )
        return there
