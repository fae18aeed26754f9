"""Models by name, and the user's own by import path (``my_module:make_model``)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from channels.streams import Stream
from wirelessfl.errors import ConfigError
from wirelessfl.models.cifar_cnn import CifarCNN
from wirelessfl.models.dropout import StreamDropout
from wirelessfl.models.fcnn import FCNN
from wirelessfl.models.lenet5 import LeNet5
from wirelessfl.models.resnet18 import ResNet18
from wirelessfl.registry import by_name

MODELS: dict[str, Callable[..., nn.Module]] = {
    "fcnn": FCNN,
    "lenet5": LeNet5,
    "cifar-cnn": CifarCNN,
    "resnet18": ResNet18,
}
_TAKEN_BY = {"dropout": "fcnn", "hidden": "fcnn", "norm": "resnet18"}  # whom to name, of those


def build_model(
    name: str,
    input_shape: Sequence[int],
    classes: int,
    *,
    dropout: float,
    stream: Stream,
    hidden: Sequence[int] | None = None,
    norm: str | None = None,
) -> nn.Module:
    """The model called ``name``, its weights drawn from ``stream`` by its own initialisation.

    Args:
        name: a key of ``MODELS``, or ``module:callable`` that takes the same arguments.
        input_shape: shape of one sample.
        classes: number of outputs.
        dropout: probability, passed on only where it is not zero.
        stream: where the initial weights come from.
        hidden: widths of hidden layers, passed on only where given.
        norm: normalisation, ``group`` or ``batch``, passed on only where given.

    Raises:
        ConfigError: no such model, or it does not fit the input.
    """
    factory = by_name("model", name, MODELS)
    options: dict[str, Any] = {"dropout": dropout} if dropout else {}
    if hidden is not None:
        options["hidden"] = tuple(hidden)
    if norm is not None:
        options["norm"] = norm
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream.key() >> 1)
        try:
            model = factory(input_shape, classes, **options)
        except TypeError as error:
            remedy = _remedy(factory, options)
            raise ConfigError(
                f"model {name!r} cannot be made with (input_shape, classes"
                f"{''.join(f', {option}' for option in options)}): {error}.{remedy}"
            ) from error
    if not isinstance(model, nn.Module):
        raise ConfigError(f"model {name!r} made {model!r}: an nn.Module is needed.")
    return model


def _remedy(factory: Callable[..., Any], options: Mapping[str, Any]) -> str:
    """What to do about the options that ``factory`` does not take."""
    refused = [name for name in options if not _takes(factory, name)]
    if not refused:
        return ""
    others = {_TAKEN_BY[name] for name in refused}
    choice = f", or choose {others.pop()}" if len(others) == 1 else ""
    return f" Leave {' and '.join(refused)} out{choice}."


def _takes(factory: Callable[..., Any], option: str) -> bool:
    try:
        inspect.signature(factory).bind_partial(**{option: None})
    except (TypeError, ValueError):
        return False
    return True


__all__ = ["FCNN", "MODELS", "CifarCNN", "LeNet5", "ResNet18", "StreamDropout", "build_model"]
