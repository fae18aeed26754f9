"""A model's parameters as one flat vector: which slice belongs to which name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from wirelessfl.errors import ConfigError


@dataclass(frozen=True)
class ParamSpec:
    """Names and shapes of the trainable parameters, in the order of the flat vector.

    Args:
        shapes: shape by name; tied parameters stand once.
    """

    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, module: nn.Module) -> ParamSpec:
        """The spec of ``module``'s trainable parameters; frozen ones and buffers are not in it.

        Raises:
            ConfigError: nothing is trainable, or a parameter is not float32.
        """
        trainable = {n: p for n, p in module.named_parameters() if p.requires_grad}
        if not trainable:
            raise ConfigError(f"model {type(module).__name__} has no trainable parameters.")
        for name, parameter in trainable.items():
            if parameter.dtype != torch.float32:
                raise ConfigError(
                    f"parameter {name!r} is {parameter.dtype}: trainable parameters must be "
                    "float32. Call .float() on the model."
                )
        return cls({name: tuple(p.shape) for name, p in trainable.items()})

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Where each name's slice begins."""
        starts, position = {}, 0
        for name, shape in self.shapes.items():
            starts[name] = position
            position += math.prod(shape)
        return starts

    @cached_property
    def size(self) -> int:
        """P, the length of the flat vector."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """``flat`` [..., P] as tensors [..., *shape] by name, sharing its memory."""
        leading = flat.shape[:-1]
        views = {}
        for name, shape in self.shapes.items():
            start = self.offsets[name]
            views[name] = flat[..., start : start + math.prod(shape)].view(*leading, *shape)
        return views

    def flatten(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """The flat vector [P] of the ``tensors`` by name, a copy."""
        return torch.cat([tensors[name].detach().reshape(-1) for name in self.shapes])

    def from_module(self, module: nn.Module) -> Tensor:
        """The flat vector [P] of the parameters that ``module`` holds now."""
        return self.flatten(dict(module.named_parameters()))
