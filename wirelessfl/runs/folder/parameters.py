"""Parameters of models in the checkpoints of runs, and models that have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import reading
from wirelessfl.base.wording import shown, suggestion
from wirelessfl.config import Config
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.runs.build.planners import data_facts
from wirelessfl.runs.build.samples import configured_model
from wirelessfl.runs.folder.run_folder import RunFolder


def tensor_mark(task: int | None) -> str:
    """Prefix of the names of a model's tensors in a checkpoint, by the number of its task."""
    return "" if task is None else f"task{task}."


def is_server_model(name: str) -> bool:
    """Whether a tensor of a checkpoint has the parameters of a run or of a task."""
    return name.endswith("server.cloud.params")


def stored_params(
    directory: RunFolder,
    tensors: Mapping[str, torch.Tensor],
    state: Mapping[str, Any],
    *,
    titled: bool,
) -> dict[str, torch.Tensor]:
    """Parameters in a checkpoint, by name.

    Args:
        directory: folder of the run.
        tensors: tensors of the checkpoint, at least those of ``is_server_model``.
        state: its state.
        titled: whether tasks have tables, and the names of parameters those of tasks.
    """
    values: dict[str, torch.Tensor] = {}
    with reading(directory.checkpoint_file, directory.remedy):
        tasks = state["tasks"]
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
    trained = {name for name, value in module.named_parameters() if value.requires_grad}
    shapes = {n: list(v.shape) for n, v in module.named_parameters(remove_duplicate=False)}
    for name in sorted(trained | params.keys()):
        of_run = list(params[name].shape) if name in params else None
        if of_run != shapes.get(name):
            difference = f"{name} is {of_run} in the run and {shapes.get(name)} in the module"
            if of_run is None or name not in shapes:
                difference = f"only the {'module' if of_run is None else 'run'} has {name}"
            raise ConfigError(
                f"the run's parameters do not fit the module: {difference}. Give the run's model."
            )
    module.load_state_dict(dict(params), strict=False)
    return module.eval()


def checked_task(task: str | None, tasks: list[str]) -> str | None:
    """The name of a task with a table; None if tasks have none.

    Args:
        task: the given name.
        tasks: names of the tasks with tables.
    """
    if task is None and len(tasks) < 2:
        return tasks[0] if tasks else None
    if task in tasks:
        return task
    if not tasks:
        raise ConfigError(f"task is {shown(task)}, but the run has no tables of tasks: omit it.")
    if task is None:
        raise ConfigError(f"the run has several models: give task, one of {', '.join(tasks)}.")
    raise ConfigError(
        f"task is {shown(task)}, which the run does not have.{suggestion(task, tasks)} "
        f"Choose {', '.join(tasks)}."
    )
