"""Parameters of models in the checkpoints of runs, and models that have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown, suggestion
from wirelessfl.config import Config
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.runs.build.planners import data_facts
from wirelessfl.runs.build.samples import configured_model


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
