"""The checkpoint in the folder of a run: its version, and extensions that are not yet in force."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from wirelessfl.drafts import TEXT_BYTES, read_stored, reading, replacing, writing
from wirelessfl.errors import ConfigError
from wirelessfl.runs.about import CHECKPOINT_LAYOUT, NUMERICS, ROWS_SCHEMA
from wirelessfl.stored_tensors import read_checkpoint, read_state, write_checkpoint
from wirelessfl.wording import shown

CHECKPOINT = "checkpoint.safetensors"
NUMBER, TEXT = (int, float), (str, type(None))
ENTRIES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("schedule", "handler", "fingerprint"), (dict,)),
    **dict.fromkeys(("learners", "reached"), (list,)),
    **dict.fromkeys(("tasks", "client_log"), (list, type(None))),
    **dict.fromkeys(("sim_seconds", "wall_seconds"), NUMBER),
    "ended": TEXT,
    "finished": (bool,),
    **dict.fromkeys(("numerics", "rows_bytes", "rows_checksum"), (int,)),
}
"""Entries of checkpoints and their types."""


class RunCheckpoint:
    """The file ``checkpoint.safetensors`` of a run.

    Args:
        folder: folder of the run.
        remedy: what to do about damage, the last sentence of error messages.
    """

    def __init__(self, folder: Path, remedy: str) -> None:
        self.folder, self.remedy = folder, remedy
        self.path = folder / CHECKPOINT

    def exists(self) -> bool:
        """Whether one has been written."""
        return os.path.lexists(self.path)

    def check_version(self, command: str) -> None:
        """Check that this version of the package can resume from the checkpoint.

        Args:
            command: the command of a new run, for messages.

        Raises:
            ConfigError: the layout or the schema differs, the results would differ, or the
                checkpoint is damaged.
        """
        state = self.state()
        if state is None:
            return
        remedy = f"Start a new run: {command}"
        layout = state.get("layout", 1)  # layout 1 has no such entry
        if layout != CHECKPOINT_LAYOUT:
            age = "an earlier" if layout < CHECKPOINT_LAYOUT else "a later"
            raise ConfigError(
                f"the run in {self.folder} was started with {age} version of wirelessfl "
                f"(checkpoint layout {layout}, this version reads {CHECKPOINT_LAYOUT}). {remedy}. "
                "That command names the settings that this version does not have."
            )
        if state.get("schema") != ROWS_SCHEMA:
            raise ConfigError(
                f"{self.folder} has rows of schema {state.get('schema')}, but this version of "
                f"wirelessfl writes {ROWS_SCHEMA}. {remedy}"
            )
        if not state["finished"] and state["numerics"] != NUMERICS:
            raise ConfigError(
                f"the run in {self.folder} was started with numerics {state['numerics']}, but this "
                f"version of wirelessfl has {NUMERICS}: its results would differ. {remedy}"
            )

    def state(self) -> dict[str, Any] | None:
        """The state without the tensors; None if no checkpoint has been written yet.

        Raises:
            ConfigError: the checkpoint is damaged.
        """
        if not self.exists():
            return None
        with reading(self.path, self.remedy):
            return self._in_force(read_state(self.path))

    def read(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Tensors and state.

        Raises:
            ConfigError: the checkpoint is missing or damaged.
        """
        with reading(self.path, self.remedy):
            tensors, state = read_checkpoint(self.path)
            return tensors, self._in_force(state)

    def read_some(
        self, wanted: Callable[[str], bool]
    ) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Some tensors and the state, without an extension.

        Args:
            wanted: which tensors to return, by name.

        Raises:
            ConfigError: the checkpoint is missing or damaged.
        """
        with reading(self.path, self.remedy):
            return read_checkpoint(self.path, wanted)

    def write(self, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Any]) -> None:
        """Replace the checkpoint atomically.

        Args:
            tensors: the tensors.
            state: the state.

        Raises:
            OSError, SafetensorError: it cannot be written; the last one remains.
        """
        with replacing(self.path) as draft:
            write_checkpoint(draft, tensors, state)

    def prepare_extension(
        self,
        tensors: Mapping[str, torch.Tensor],
        state: Mapping[str, Any],
        config: str,
        changes: Mapping[str, Any],
    ) -> None:
        """Write the last checkpoint again, with changes that wait for other settings.

        Args:
            tensors: its tensors.
            state: its state.
            config: the settings, as TOML; the changes are in force once ``config.toml`` has them.
            changes: entries of the state.

        Raises:
            NotWrittenError: it cannot be written.
        """
        extension = {"config": _hash_of(config.encode()), "state": dict(changes)}
        with writing(self.path, self.folder):
            self.write(tensors, {**state, "extension": extension})

    def _in_force(self, state: dict[str, Any]) -> dict[str, Any]:
        """The state, with its extension if ``config.toml`` has those settings."""
        extension = state.pop("extension", None)
        if extension is None:
            return _checked(state)
        config = read_stored(self.folder / "config.toml", TEXT_BYTES)
        extends = extension["config"] == _hash_of(config)
        return _checked(state | extension["state"] if extends else state)


def _checked(state: dict[str, Any]) -> dict[str, Any]:
    """The state, if it can be one of this layout.

    Raises:
        ValueError: an entry has a wrong type.
    """
    if not isinstance(state.get("layout", 1), int):
        raise ValueError(f"layout is {shown(state['layout'])}")
    if state.get("layout") != CHECKPOINT_LAYOUT:
        return state  # refused by ``check_version``
    for name, kinds in ENTRIES.items():
        value = state.get(name, kinds)
        if value is kinds:
            continue
        large = isinstance(value, int | float) and not abs(value) < 1 << 63
        if not isinstance(value, kinds) or large:
            raise ValueError(f"{name} is {shown(value)} in its state")
    if state.get("client_log") and [*map(type, state["client_log"])] != [int] * 3:
        raise ValueError(f"client_log is {shown(state['client_log'])} in its state")
    if "finished" not in state:
        raise ValueError("it has no state of a run")
    return state


def _hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
