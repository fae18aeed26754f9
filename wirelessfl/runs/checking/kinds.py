"""What can be checked: the kind of a class or function, and the data and settings of its runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from channels import Access, Network
from channels.concurrency import ignored_warnings
from channels.streams import Stream
from wirelessfl.algorithms import HFedAvg, Method
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import calling
from wirelessfl.base.registry import Choice
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.config.choices import KINDS
from wirelessfl.config.named import own_network
from wirelessfl.data import Dataset, load_dataset
from wirelessfl.engine.rounds.redesign import Redesign
from wirelessfl.models.losses import Loss
from wirelessfl.models.metrics import Metric
from wirelessfl.runs.checking.subject import CLIENTS, Settings
from wirelessfl.runs.observers import Observer

CHECKED = tuple(dict.fromkeys(["algorithm", *KINDS, "metric", "network", "observer"]))
"""The kinds that can be checked, by the name of the setting that selects one."""
FOLDERS = ("folder", "path", "root", "directory", "data_path", "data_root", "where", "_")
"""Names that mark a function's only argument as the data folder: the function is a data set."""
STREAM = Stream(7, ("check",))
SAMPLES = 240
TRIED = 8
"""Number of samples on which a loss or a metric is tried."""
REQUESTS: Settings = {"schedule": "buffered", "requests": 3, "buffer": 2, "eval_every": 1}
SESSIONS: Settings = {"sessions": 2, "rounds": 2}
BASE: Mapping[str, Settings] = {
    "select": {"clients_per_round": 3},
    "path_loss": {"layout": "disc"},
    "mobility": {"layout": "disc"},
    "failures": {"snr_db": -5},
    "delays": {**REQUESTS, "step_seconds": 0.1},
    "assignment": {"schedule": "simultaneous", "clients_per_round": 4},
    "warm_start": SESSIONS,
    "presence": SESSIONS,
    "network": {"clients": None, "chunk": None},
    "observer": {"rounds": 6},
}
"""Settings with which a choice of each kind takes part in a run."""
LOSSES: Mapping[str, Settings] = {
    "reals": {"loss": "mse"},
    "several reals": {"loss": "mse"},
    "several labels": {"loss": "binary-cross-entropy"},
}
"""Settings of a run that computes a metric of labels other than classes."""
SEED = 7


def base_of(kind: str, thing: Any, path: str, labels: str) -> Settings:
    """Settings of the runs of a class or function, whose data have a kind of labels."""
    base = dict(BASE.get(kind, {}))
    if kind == "metric":
        base |= LOSSES.get(labels, {})
    elif kind == "algorithm" and issubclass(thing, HFedAvg):
        base |= {"cells": 2}
    elif kind == "assigner" and thing.of_cells:
        base |= {"algorithm": "hfedavg", "cells": 2}
    elif kind == "schedule" and thing.work == "requests":
        names = {entry.name for entry in fields(thing)}
        used = {name: value for name, value in REQUESTS.items() if name in names}
        base |= {"eval_every": 1, "rounds": 6, **used}
    elif kind == "schedule" and thing.work != "rounds":
        base |= {"clients_per_round": 4}
    elif kind == "network" and own_network(path, SEED).cells > 1:
        base |= {"algorithm": "hfedavg"}
    return base


def data_of(kind: str, thing: Any, path: str, settings: Settings) -> tuple[str, Dataset | None]:
    """The kind of labels and the data of the runs of a class or function; None if it is the data.

    For a loss or a metric, the first data set whose labels fit; the first of all if none does.
    """
    sets = list(_labelled())
    for labels, data in sets if kind in ("loss", "metric") else ():
        try:
            with _tried():
                if _fits(thing, settings, labels, data):
                    return labels, data
        except Exception:  # users' code may raise anything for labels that it does not know
            continue
    labels, data = sets[0]
    if kind == "network":  # a few samples for each client
        rows = np.arange(max(SAMPLES, 4 * own_network(path, SEED).clients)) % SAMPLES
        inputs, targets = data.train_inputs[rows], data.train_labels[rows]
        data = replace(data, train_inputs=inputs, train_labels=targets, groups=None)
    return labels, None if kind == "dataset" else data


def _labelled() -> Iterator[tuple[str, Dataset]]:
    """A part of digits, with each kind of labels; the labels follow the digit."""
    digits = load_dataset("digits")
    order = torch.from_numpy(STREAM.generator().permutation(len(digits.train_labels))[:SAMPLES])
    x, y = digits.train_inputs[order], digits.train_labels[order]
    test_x, test_y = digits.test_inputs[:SAMPLES], digits.test_labels[:SAMPLES]
    groups = np.arange(SAMPLES) % CLIENTS
    yield "classes", Dataset("some-digits", x, y, test_x, test_y, digits.classes, groups=groups)
    kinds: dict[str, Callable[[Tensor], Tensor]] = {
        "reals": lambda y: y.float() / 9,
        "several reals": lambda y: torch.stack([y.float() / 9, (y % 2).float()], 1),
        "several labels": lambda y: torch.stack([y % 2, y // 5, y % 3 // 2], 1).float(),
    }
    for kind, of in kinds.items():
        yield kind, Dataset("some-digits", x, of(y), test_x, of(test_y), groups=groups)


def _outputs_and_labels(data: Dataset) -> tuple[Tensor, Tensor]:
    """Random outputs of a model for a few samples, [batch, classes], and their labels."""
    normal = STREAM.generator().standard_normal((TRIED, data.classes))
    return torch.from_numpy(normal.astype(np.float32)), data.train_labels[:TRIED].clone()


@contextmanager
def _tried() -> Iterator[None]:
    """Try a function of the user with labels that may not fit it: warnings do not count."""
    with seeded_generators(STREAM), ignored_warnings():
        yield


def _fits(thing: Any, settings: Settings, labels: str, data: Dataset) -> bool:
    """Whether a loss or a metric takes the labels of a data set; raises if it does not."""
    base = thing if isinstance(thing, type) else object
    if issubclass(base, Metric):
        right: Any = {"classes": "classes", "several labels": "signs"}.get(labels)
        return base().why_not(data.train_labels, right) is None
    function = thing
    if issubclass(base, Loss):
        loss = base(**settings)
        if not loss.fits(data.train_labels):
            return False
        function = loss.values
    values = function(*_outputs_and_labels(data))
    # A loss of regression broadcasts outputs [n, 1] against labels [n], by mistake.
    shapes = ((), (TRIED,), tuple(data.train_labels[:TRIED].shape))
    return not isinstance(values, Tensor) or tuple(values.shape) in shapes


def kind_of(thing: Any) -> str:
    """The kind of a class or function.

    Raises:
        ConfigError: the kind is unclear.
    """
    if isinstance(thing, type):
        bases: tuple[tuple[str, type[Any]], ...] = (
            ("algorithm", Method),
            *((kind, KINDS[kind].base) for kind in KINDS),
            ("metric", Metric),
            ("observer", Observer),
            ("uplink", Access),
            ("model", nn.Module),
        )
        for kind, base in bases:
            if issubclass(thing, base):
                return kind
    elif isinstance(thing, Observer):
        return "observer"
    elif isinstance(thing, Network):
        return "network"
    elif callable(thing) and not isinstance(thing, nn.Module):
        parameters = inspect.signature(thing).parameters
        needed = [
            name
            for name, p in parameters.items()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        if {"input_shape", "classes"} <= parameters.keys():
            return "model"
        if "data_dir" in parameters or (len(needed) == 1 and needed[0] in FOLDERS):
            return "dataset"
        if needed == ["stream"]:
            return "network"
        if len(needed) == 2:
            return _kind_of_outputs(thing)
        if not needed:
            return _kind_of_result(thing)
    raise ConfigError(f"{shown(thing)} matches no kind: {_remedy(thing)}")


def _remedy(thing: Any) -> str:
    """What to check instead of something without a kind."""
    cls = thing if isinstance(thing, type) else type(thing)
    if issubclass(cls, Redesign):
        return "redesigns have no contracts. Give an object to wirelessfl.run(redesign=...)."
    if issubclass(cls, Config):
        return "give one of your classes or functions. wirelessfl.plan tries settings."
    if not isinstance(thing, type) and isinstance(thing, Choice | Access | nn.Module):
        return f"give the class, {cls.__name__}, and its settings by name."
    return f"derive it from the base class of its kind, or set kind to one of {', '.join(CHECKED)}."


def path_of_function(function: Any) -> str:
    """Module and name of a function or a class."""
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"


def _kind_of_outputs(function: Callable[..., Any]) -> str:
    """The kind of a function of outputs and labels: a loss has a gradient."""
    for _, data in _labelled():
        outputs, labels = _outputs_and_labels(data)
        try:
            with _tried():
                values = function(outputs.requires_grad_(), labels)
        except Exception:  # users' code may raise anything for labels that it does not know
            continue
        return "loss" if isinstance(values, Tensor) and values.requires_grad else "metric"
    raise ConfigError(
        f"{path_of_function(function)} fails for random outputs and labels, so its kind cannot be "
        "told: name it, loss or metric."
    )


def _kind_of_result(function: Callable[..., Any]) -> str:
    """The kind of a function without arguments, from what it returns."""
    with calling(f"{path_of_function(function)}()", ConfigError), seeded_generators(STREAM):
        result = function()
    if isinstance(result, Network | Observer):
        return "network" if isinstance(result, Network) else "observer"
    raise ConfigError(
        f"{path_of_function(function)} returns {shown(result)}, which matches no kind: set "
        f"kind to one of {', '.join(CHECKED)}."
    )
