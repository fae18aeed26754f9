"""Shapes of the parameters of some built-in models, and what modules declare about themselves.

Prices of rounds need only the shapes, and then do without PyTorch, which takes seconds to load.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import torch


@dataclass(frozen=True)
class Shapes:
    """Parameters of a model.

    Args:
        parameters: shape by name, in the order of the flat vector; all are trainable.
        fully_connected: names of the fully connected layers in order.
    """

    parameters: Mapping[str, tuple[int, ...]]
    fully_connected: tuple[str, ...]


def known_shapes(
    name: str, input_shape: Sequence[int], classes: int, hidden: Sequence[int] | None = None
) -> Shapes | None:
    """The shapes of model ``name``; None if they are not known, or the input does not fit.

    Args:
        name: a name of ``wirelessfl.models.MODELS``.
        input_shape: shape of one sample.
        hidden: widths of hidden layers; None for the model's default.
    """
    if name in _HIDDEN:
        widths = (math.prod(input_shape), *(_HIDDEN[name] if hidden is None else hidden), classes)
        names = [f"layers.{1 + 3 * place}" for place in range(len(widths) - 1)]
        return _shapes({}, dict(zip(names, pairwise(widths), strict=True)))
    images = _IMAGES.get(name)
    if images is None or tuple(input_shape[1:]) != images.size:
        return None
    widths = (*images.widths, classes)
    names = [f"fc{place}" for place in range(1, len(widths))]
    return _shapes(
        images.convolutions(input_shape[0]), dict(zip(names, pairwise(widths), strict=True))
    )


_HIDDEN: Mapping[str, tuple[int, ...]] = {"fcnn": (300,), "mlp": (200, 200), "linear": ()}
"""Models of fully connected layers, with the default widths of their hidden layers."""


@dataclass(frozen=True)
class _Images:
    """A model of square images: convolutions, each with ReLU and pooling, then ``fc1, fc2, ...``.

    Args:
        side: height and width of an image.
        kernel: height and width of the kernels.
        channels: channels after each convolution.
        widths: inputs of the fully connected layers.
    """

    side: int
    kernel: int
    channels: tuple[int, ...]
    widths: tuple[int, ...]

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of an image."""
        return self.side, self.side

    def convolutions(self, channels: int) -> dict[str, tuple[int, ...]]:
        """Shape of the weight of each convolution, by name."""
        return {
            f"features.{3 * place}": (outputs, inputs, self.kernel, self.kernel)
            for place, (inputs, outputs) in enumerate(pairwise((channels, *self.channels)))
        }


_IMAGES: Mapping[str, _Images] = {
    "lenet5": _Images(28, 5, (6, 16), (256, 120, 84)),
    "cifar-cnn": _Images(32, 3, (16, 32, 64), (1024, 500)),
    "fedast-cnn": _Images(32, 5, (64, 64), (1600, 384, 192)),
}


def _shapes(
    convolutions: Mapping[str, tuple[int, ...]], linear: Mapping[str, tuple[int, int]]
) -> Shapes:
    """Shapes of layers with weights and biases; linear ones are given as (inputs, outputs)."""
    weights = {**convolutions, **{name: shape[::-1] for name, shape in linear.items()}}
    parameters: dict[str, tuple[int, ...]] = {}
    for name, shape in weights.items():
        parameters |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return Shapes(parameters, tuple(linear))


@dataclass(frozen=True)
class Declared:
    """Optional attributes of a module, or their defaults.

    Attributes of other types, such as a layer of the same name, are ignored.

    Args:
        fully_connected: names of the fully connected layers in order, from input to output; HIST
            partitions the neurons between them.
        bytes_per_sample: memory per training sample in addition to the parameters; 0 if
            negligible.
        test_batch: number of samples per test batch.
        vocabulary: number of known token ids, which start at 0; None if the inputs are not tokens.
        notes: lines that a run reports.
    """

    fully_connected: tuple[str, ...] = ()
    bytes_per_sample: int = 0
    test_batch: int = 2000
    vocabulary: int | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, module: torch.nn.Module) -> Declared:
        """Read the attributes of any ``nn.Module``."""
        attributes: dict[str, Any] = {}
        for name in (entry.name for entry in fields(cls)):
            value = getattr(module, name, None)
            if name in ("fully_connected", "notes"):
                if isinstance(value, tuple | list) and all(isinstance(one, str) for one in value):
                    attributes[name] = tuple(value)
            elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
                attributes[name] = value
        return cls(**attributes)
