"""A run's folder: ``config.toml``, ``rows.jsonl`` and a checkpoint, each whole at any moment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from wirelessfl.config import Config
from wirelessfl.errors import ConfigError

Row = dict[str, Any]


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Write a file under another name and put it in place when it is whole and on disk."""
    draft = path.with_name(path.name + ".part")
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


class RunDirectory:
    """The folder of one run.

    Rows are appended; a checkpoint names how many bytes of them it covers, and going on from it
    cuts off what lies behind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows_file = path / "rows.jsonl"
        self._checkpoint_file = path / "checkpoint.safetensors"

    @staticmethod
    def check_free(path: Path) -> None:
        """Refuse a folder that holds anything.

        Raises:
            ConfigError: it is a file, or not empty.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ConfigError(
                f"out is {path}, which is not an empty folder. Choose another one, or go on with "
                f"the run in it: wirelessfl resume {path}"
            )

    @classmethod
    def create(cls, path: Path, config: Config) -> RunDirectory:
        """A new run's folder with its configuration."""
        cls.check_free(path)
        path.mkdir(parents=True, exist_ok=True)
        directory = cls(path)
        with _replacing(path / "config.toml") as draft:
            draft.write_text(config.to_toml(), encoding="utf-8")
        return directory

    @classmethod
    def open(cls, path: Path) -> tuple[RunDirectory, Config]:
        """An existing run's folder and its configuration.

        Raises:
            ConfigError: there is no run in it.
        """
        file = path / "config.toml"
        if not file.is_file():
            raise ConfigError(f"{path} holds no run: there is no config.toml in it.")
        return cls(path), Config.from_toml(file)

    def append(self, row: Row) -> None:
        """Add one row; it is on disk, whole or cut off by the next resume."""
        with self._rows_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def rows(self) -> list[Row]:
        """All rows written so far; a last line that is not whole does not count."""
        if not self._rows_file.exists():
            return []
        lines = self._rows_file.read_text(encoding="utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def save(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Write a checkpoint that covers all rows so far."""
        size = 0
        if self._rows_file.exists():
            with self._rows_file.open("rb") as file:
                os.fsync(file.fileno())
                size = file.seek(0, os.SEEK_END)
        note = json.dumps({**state, "rows_bytes": size})
        with _replacing(self._checkpoint_file) as draft:
            contiguous = {name: value.contiguous().cpu() for name, value in tensors.items()}
            save_file(contiguous, draft, metadata={"state": note})

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The checkpoint's tensors and state; None when none was written yet."""
        if not self._checkpoint_file.exists():
            return None
        with safe_open(self._checkpoint_file, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, json.loads(file.metadata()["state"])

    def cut_rows(self, size: int) -> None:
        """Forget the rows behind the first ``size`` bytes."""
        if self._rows_file.exists():
            os.truncate(self._rows_file, size)
