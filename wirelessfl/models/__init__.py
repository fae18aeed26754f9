"""Built-in models by name, and the user's models by import path (``my_module:make_model``)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError, out_of_memory
from wirelessfl.base.guard import NO_ERROR, ONE_LINE, located
from wirelessfl.base.registry import by_name
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.base.wording import shown
from wirelessfl.models.built_in import BuiltIn

if TYPE_CHECKING:
    from wirelessfl.models.built_in.convolutional import (
        CifarCNN,
        FedASTCNN,
        GroupNormCNN,
        LeNet5,
        ResNet18,
        ResNet34,
    )
    from wirelessfl.models.built_in.dense import FCNN, MLP, LinearClassifier
    from wirelessfl.models.built_in.gpt2_lora import GPT2LoRA, GPT2LoRATiny
    from wirelessfl.models.built_in.text import LSTM, TextMean
    from wirelessfl.models.parts import StreamDropout
    from wirelessfl.models.submodels.picture import draw_masks

MODELS: Mapping[str, BuiltIn] = {
    "fcnn": BuiltIn(f"{__name__}.built_in.dense", "FCNN"),
    "mlp": BuiltIn(f"{__name__}.built_in.dense", "MLP"),
    "linear": BuiltIn(f"{__name__}.built_in.dense", "LinearClassifier"),
    "lenet5": BuiltIn(f"{__name__}.built_in.convolutional", "LeNet5"),
    "cifar-cnn": BuiltIn(f"{__name__}.built_in.convolutional", "CifarCNN"),
    "fedast-cnn": BuiltIn(f"{__name__}.built_in.convolutional", "FedASTCNN"),
    "gn-cnn": BuiltIn(f"{__name__}.built_in.convolutional", "GroupNormCNN"),
    "resnet18": BuiltIn(f"{__name__}.built_in.convolutional", "ResNet18"),
    "resnet34": BuiltIn(f"{__name__}.built_in.convolutional", "ResNet34"),
    "lstm": BuiltIn(f"{__name__}.built_in.text", "LSTM"),
    "text-mean": BuiltIn(f"{__name__}.built_in.text", "TextMean", default_tokenizer="words"),
    "gpt2-lora": BuiltIn(f"{__name__}.built_in.gpt2_lora", "GPT2LoRA"),
    "gpt2-lora-tiny": BuiltIn(
        f"{__name__}.built_in.gpt2_lora", "GPT2LoRATiny", default_tokenizer="words"
    ),
}
_HOMES = {model.name: model.module for model in MODELS.values()}
_HOMES |= {"StreamDropout": f"{__name__}.parts", "draw_masks": f"{__name__}.submodels.picture"}
TAKERS = {
    "hidden": "fcnn",
    "dropout": "fcnn",
    "norm": "resnet18",
    "embedding": "text-mean",
    "embedding_file": "text-mean",
    "pretrained": "gpt2-lora",
    "lora_rank": "gpt2-lora",
    "lora_alpha": "gpt2-lora",
}
"""For each setting, a model that accepts it."""
FACTS = ("pad_id", "vocabulary", "words")
"""Facts of a data set that models may ask for: the padding token of its texts, the number of token
ids, and the word of each."""


def __getattr__(name: str) -> Any:
    """Import a class on first use, because its file loads PyTorch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def build_model(
    name: str,
    input_shape: Sequence[int],
    classes: int,
    *,
    stream: Stream,
    **options: Any,
) -> torch.nn.Module:
    """Build model ``name`` with initial weights drawn from ``stream``.

    Args:
        name: a key of ``MODELS``, or the import path of a callable with the same arguments.
        input_shape: shape of one sample.
        stream: randomness of the initial weights.
        options: settings of the model, see ``wirelessfl.models.choice.SETTINGS``; None, and a
            dropout of 0, mean the model's default. The facts of the data set in ``FACTS`` are
            passed on to models that accept them.
    """
    factory = by_name("model", name, MODELS)
    parameters = parameters_of(factory)
    options |= {"dropout": options.get("dropout") or None}
    options = {
        name: tuple(value) if name == "hidden" else value
        for name, value in options.items()
        if value is not None and (name not in FACTS or name in parameters)
    }
    with seeded_generators(stream), _own_generator(factory, stream):
        try:
            model = factory(input_shape, classes, **options)
        except (*ONE_LINE, *NO_ERROR):
            raise
        except BaseException as error:  # a user's callable may raise anything
            if out_of_memory(error):
                raise
            expected = isinstance(error, TypeError | RuntimeError)  # torch's, if sizes overflow
            reason = str(error).partition("\n")[0] if expected else located(error)
            remedy = _remedy(name, factory, options)
            raise ConfigError(
                f"model {name!r} cannot be built with (input_shape, classes"
                f"{''.join(f', {option}' for option in options)}): {reason.removesuffix('.')}."
                f"{remedy}"
            ) from error
    if not isinstance(model, torch.nn.Module):
        raise ConfigError(f"model {name!r} returned {shown(model)}: return an nn.Module.")
    return model


def _own_generator(factory: object, stream: Stream) -> AbstractContextManager[object]:
    """For built-in models; users' callables may seed and read the global generator."""
    if not isinstance(factory, BuiltIn):
        return nullcontext()
    from wirelessfl.models.parts import OwnGenerator  # loads PyTorch

    return OwnGenerator(stream.key() >> 1)  # as ``seeded_generators``


def parameters_of(factory: Callable[..., torch.nn.Module]) -> Mapping[str, inspect.Parameter]:
    """Parameters of a callable, by name; empty if it has no signature."""
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):  # no signature, or not callable
        return {}


def _remedy(name: str, factory: Callable[..., torch.nn.Module], options: Mapping[str, Any]) -> str:
    """Advice to leave out options that model ``name`` does not or may not accept."""
    parameters = parameters_of(factory)
    names = [option for option in options if option in TAKERS]
    names = [option for option in names if option not in parameters] or names
    if not names:
        return ""
    others = {TAKERS[option] for option in names} - {name}
    choose = f", or choose {others.pop()}" if len(others) == 1 else ""
    return f" Leave {' and '.join(names)} out{choose}."


__all__ = [
    "FCNN",
    "LSTM",
    "MLP",
    "MODELS",
    "CifarCNN",
    "FedASTCNN",
    "GPT2LoRA",
    "GPT2LoRATiny",
    "GroupNormCNN",
    "LeNet5",
    "LinearClassifier",
    "ResNet18",
    "ResNet34",
    "StreamDropout",
    "TextMean",
    "build_model",
    "draw_masks",
    "parameters_of",
]
