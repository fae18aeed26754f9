"""The checkpoint in the folder of a run, the parameters in it, and pending extensions."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import TEXT_BYTES, read_stored, reading, replacing, writing
from wirelessfl.base.stored_tensors import read_checkpoint, read_state, write_checkpoint
from wirelessfl.base.wording import shown, suggestion
from wirelessfl.config import Config
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.runs.build.planners import data_facts
from wirelessfl.runs.build.samples import configured_model
from wirelessfl.runs.folder.about import CHECKPOINT_LAYOUT, NUMERICS, ROWS_SCHEMA

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
        self, selected: Callable[[str], bool]
    ) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Some tensors and the state, without an extension.

        Args:
            selected: which tensors to return, by name.

        Raises:
            ConfigError: the checkpoint is missing or damaged.
        """
        with reading(self.path, self.remedy):
            return read_checkpoint(self.path, selected)

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
    """The state, if it can be one of this layout."""
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


def tensor_mark(task: int | None) -> str:
    """Prefix of the names of a model's tensors in a checkpoint, by the number of its task."""
    return "" if task is None else f"task{task}."


def is_server_model(name: str) -> bool:
    """Whether a tensor of a checkpoint has the parameters of a run or of a task."""
    return name.endswith("server.cloud.params")


def stored_params(
    tensors: Mapping[str, torch.Tensor], state: Mapping[str, Any], *, titled: bool
) -> dict[str, torch.Tensor]:
    """Parameters in a checkpoint, by name.

    Args:
        tensors: tensors of the checkpoint, at least those of ``is_server_model``.
        state: its state.
        titled: whether tasks have tables, and the names of parameters those of tasks.

    Raises:
        ValueError, LookupError, TypeError: they are not those of the model.
    """
    tasks, values = state["tasks"], dict[str, torch.Tensor]()
    for number, learner in enumerate(state["learners"]):
        shapes = {name: tuple(shape) for name, shape in learner["shapes"].items()}
        mark = tensor_mark(None if tasks is None else number)
        spec, params = ParamSpec(shapes, learner["ties"]), tensors[f"{mark}server.cloud.params"]
        if params.dtype != torch.float32 or params.shape != (spec.size,):
            raise ValueError(f"its parameters are {params.dtype} {list(params.shape)}")
        values |= named_params(spec.named(params), tasks[number] if titled else None)
    return values


def named_params(params: dict[str, torch.Tensor], task: str | None) -> dict[str, torch.Tensor]:
    """Prefix the names of parameters with the task's name, unless ``task`` is None."""
    return params if task is None else {f"{task}.{name}": v for name, v in params.items()}


def task_params(params: Mapping[str, torch.Tensor], task: str | None) -> dict[str, torch.Tensor]:
    """The parameters of a task, without its name; all of them if ``task`` is None."""
    head = "" if task is None else f"{task}."
    return {name.removeprefix(head): v for name, v in params.items() if name.startswith(head)}


def stored_model(
    config: Config | None,
    params: Mapping[str, torch.Tensor],
    stream: Stream,
    module: torch.nn.Module | None,
) -> torch.nn.Module:
    """The torch module of a run, with these parameters.

    Args:
        config: settings of the run, or of the task; needed without ``module``.
        params: parameters of the model, by name.
        stream: random stream of the run or of the task, for parameters that were not trained.
        module: a module that receives the parameters; None to build the configured one.

    Raises:
        ConfigError: the model or data were given as objects, or other parameters are needed.
        DataError: the data set must be loaded to build the model, but is missing.
    """
    if module is None:
        assert config is not None
        missing = [name for name in ("model", "data") if getattr(config.given, name) is not None]
        if missing:
            raise ConfigError(
                f"the run was started with {missing[0]}=..., which its folder does not contain: "
                "give a module of the same layers, result.model(module=...)."
            )
        weights = stream.child("initial weights")
        module = configured_model(config.model, data_facts(config), weights)
    if not isinstance(module, torch.nn.Module):
        raise ConfigError(f"module is {shown(module)}: give an nn.Module, such as MyModel().")
    module_shapes = {name: tuple(value.shape) for name, value in module.named_parameters()}
    trained = {name for name, value in module.named_parameters() if value.requires_grad}
    shapes = {name: tuple(value.shape) for name, value in params.items()}
    wrong = sorted(
        name for name, shape in shapes.items() if module_shapes.get(name, shape) != shape
    )
    tied = dict(module.named_parameters(remove_duplicate=False)).keys()
    absent = sorted((trained - shapes.keys()) | (shapes.keys() - tied))
    if wrong or absent:
        name = [*wrong, *absent][0]
        raise ConfigError(
            f"the run's parameters do not fit the module: {name} is {list(shapes.get(name, ()))} "
            f"in the run and {list(module_shapes.get(name, ()))} in the module. Give the run's "
            "model."
            if name in shapes and name in module_shapes
            else f"the run's parameters do not fit the module: only the "
            f"{'run' if name in shapes else 'module'} has {name}. Give the run's model."
        )
    module.load_state_dict(dict(params), strict=False)
    return module.eval()


def checked_task(task: str | None, tasks: list[str]) -> str | None:
    """The name of a task with a table; None if tasks have none.

    Args:
        task: the given name.
        tasks: names of the tasks with tables.

    Raises:
        ConfigError: it must be given, or is unknown.
    """
    if task is None and len(tasks) == 1:
        return tasks[0]
    if (task is None) == (not tasks) and (task in tasks or not tasks):
        return task
    if not tasks:
        raise ConfigError(f"task is {shown(task)}, but the run has no tables of tasks: omit it.")
    if task is None:
        raise ConfigError(f"the run has several models: give task, one of {', '.join(tasks)}.")
    raise ConfigError(
        f"task is {shown(task)}, which the run does not have.{suggestion(task, tasks)} "
        f"Choose {', '.join(tasks)}."
    )
