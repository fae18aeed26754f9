"""A model's parameters as one flat vector: which slice belongs to which name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parameter import is_lazy

from wirelessfl.errors import ConfigError


@dataclass(frozen=True)
class ParamSpec:
    """Names and shapes of the trainable parameters, in the order of the flat vector.

    Args:
        shapes: shape by name; tied parameters stand once, under the first of their names.
        ties: the further names of tied parameters, each with the one in ``shapes``.
    """

    shapes: Mapping[str, tuple[int, ...]]
    ties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, module: nn.Module) -> ParamSpec:
        """The spec of ``module``'s trainable parameters; frozen ones and buffers are not in it.

        Raises:
            ConfigError: nothing is trainable; a trainable parameter has no values yet, is not
                float32, or shares memory with another tensor without being tied to it.
        """
        _check_initialised(module)
        trainable = {n: p for n, p in module.named_parameters() if p.requires_grad}
        if not trainable:
            raise ConfigError(
                f"model {type(module).__name__} has no trainable parameters: give one that has."
            )
        for name, parameter in trainable.items():
            if parameter.dtype != torch.float32:
                remedy = (
                    "Call .float() on the model."
                    if parameter.is_floating_point()
                    else "Keep real and imaginary parts in parameters of their own."
                )
                raise ConfigError(
                    f"parameter {name!r} is {parameter.dtype}: trainable parameters must be "
                    f"float32. {remedy}"
                )
        _check_memory(module, trainable)
        first = {id(parameter): name for name, parameter in trainable.items()}
        ties = {
            name: first[id(parameter)]
            for name, parameter in module.named_parameters(remove_duplicate=False)
            if id(parameter) in first and name not in trainable
        }
        return cls({name: tuple(p.shape) for name, p in trainable.items()}, ties)

    def tied_to(self, name: str) -> str | None:
        """Another name of the parameter ``name``; None where it has only one."""
        if name in self.ties:
            return self.ties[name]
        return next((alias for alias, first in self.ties.items() if first == name), None)

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

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """``views`` under all names: tied parameters stand under each of theirs."""
        views = self.views(flat)
        return views | {alias: views[name] for alias, name in self.ties.items()}

    def flatten(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """The flat vector [P] of the ``tensors`` by name, a copy."""
        return torch.cat([tensors[name].detach().reshape(-1) for name in self.shapes])

    def from_module(self, module: nn.Module) -> Tensor:
        """The flat vector [P] of the parameters that ``module`` holds now."""
        return self.flatten(dict(module.named_parameters()))


def slots(module: nn.Module, spec: ParamSpec) -> tuple[tuple[str, str], ...]:
    """Where else in ``module`` a parameter of ``spec`` is put to replace it: (place, name).

    A layer that stands in the model twice has one place for its weight, though two names.
    """

    def place(name: str) -> tuple[int, str]:
        owner, _, last = name.rpartition(".")
        return id(module.get_submodule(owner)), last

    taken = {place(name) for name in spec.shapes}
    found = []
    for alias, name in spec.ties.items():
        if place(alias) not in taken:
            taken.add(place(alias))
            found.append((alias, name))
    return tuple(found)


def call_with(
    module: nn.Module,
    params: Mapping[str, Tensor],
    places: tuple[tuple[str, str], ...],
    inputs: Tensor,
) -> Tensor:
    """The module's output for ``inputs`` with ``params`` by name instead of its own.

    Args:
        module: the model.
        params: tied parameters stand once.
        places: the further ones of tied parameters, from ``slots``.
        inputs: [batch, ...].
    """
    tensors = {**params, **{place: params[name] for place, name in places}}
    # torch would look for ties in every call, and leaves a layer that stands in the model twice
    # with the tensors of the call.
    output: Tensor = functional_call(module, tensors, (inputs,), tie_weights=False)
    return output


def _check_initialised(module: nn.Module) -> None:
    """Refuse parameters and buffers without values.

    Raises:
        ConfigError: a layer is lazy, or on the meta device.
    """
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if is_lazy(tensor):
            raise ConfigError(
                f"model {type(module).__name__}: {name!r} has no shape yet, because its layer is "
                "lazy. Call the model once on a sample first, or give the layer its sizes."
            )
        if tensor.is_meta:
            raise ConfigError(
                f"model {type(module).__name__}: {name!r} has no values, because it is on the meta "
                "device. Build the model on the CPU."
            )


def _check_memory(module: nn.Module, trainable: Mapping[str, nn.Parameter]) -> None:
    """Refuse trainable parameters that cannot change on their own.

    Raises:
        ConfigError: one shares memory with another tensor, or its elements with each other.
    """
    owners: dict[int, dict[str, Tensor]] = {}
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.numel():
            owners.setdefault(tensor.untyped_storage().data_ptr(), {})[name] = tensor
    for name, parameter in trainable.items():
        sizes = zip(parameter.shape, parameter.stride(), strict=True)
        if parameter.numel() and any(size > 1 and stride == 0 for size, stride in sizes):
            raise ConfigError(
                f"parameter {name!r} is expanded: several of its elements share memory, and would "
                "be trained apart. Expand it in forward, or make a .clone() the parameter."
            )
    for sharing in owners.values():
        for (one, first), (two, second) in combinations(sharing.items(), 2):
            if {one, two} & trainable.keys() and _overlap(first, second):
                raise ConfigError(
                    f"{one!r} and {two!r} share memory, and are two tensors of model "
                    f"{type(module).__name__}, which would be trained apart. Assign one "
                    "nn.Parameter to both names to tie them, or .clone() one of them."
                )


def _overlap(one: Tensor, two: Tensor) -> bool:
    """Whether two tensors of one storage have an element in common."""
    (low, high), (begin, end) = _span(one), _span(two)
    if high <= begin or end <= low:
        return False
    if one.is_contiguous() and two.is_contiguous():
        return True
    places = [
        torch.as_strided(torch.arange(max(high, end)), t.shape, t.stride(), t.storage_offset())
        for t in (one, two)
    ]
    return bool(torch.isin(*places).any())


def _span(tensor: Tensor) -> tuple[int, int]:
    """The first element of the storage that ``tensor`` has, and the one behind its last."""
    start = int(tensor.storage_offset())
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return start, start + sum((size - 1) * int(stride) for size, stride in steps) + 1
