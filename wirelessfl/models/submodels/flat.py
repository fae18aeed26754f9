"""A model's trainable parameters as one flat vector."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import torch

from wirelessfl.base.errors import ConfigError


@dataclass(frozen=True)
class ParamSpec:
    """Names and shapes of the trainable parameters, in the order of the flat vector.

    Args:
        shapes: shape by name; tied parameters appear once, under their first name.
        ties: maps each additional name of a tied parameter to its name in ``shapes``.
    """

    shapes: Mapping[str, tuple[int, ...]]
    ties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, module: torch.nn.Module) -> ParamSpec:
        """The spec of ``module``'s trainable parameters, without frozen parameters and buffers.

        Raises:
            ConfigError: no parameter is trainable, or a trainable parameter has no values, is not
                float32, or shares memory with another tensor without being tied to it.
        """
        _check_initialised(module)
        trainable = {n: p for n, p in module.named_parameters() if p.requires_grad}
        if not trainable:
            raise ConfigError(
                f"model {type(module).__name__} has no trainable parameters: choose another model, "
                "or set requires_grad."
            )
        for name, parameter in trainable.items():
            if parameter.dtype != torch.float32:
                remedy = (
                    "Call .float() on the model."
                    if parameter.is_floating_point()
                    else "Use separate parameters for real and imaginary parts."
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
        """Another name of the parameter ``name``; None if it has only one."""
        if name in self.ties:
            return self.ties[name]
        return next((alias for alias, first in self.ties.items() if first == name), None)

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Start of each parameter's slice, by name."""
        starts, position = {}, 0
        for name, shape in self.shapes.items():
            starts[name] = position
            position += math.prod(shape)
        return starts

    @cached_property
    def size(self) -> int:
        """P, the length of the flat vector."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def views(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        """Views of ``flat`` [..., P] as tensors [..., *shape] by name."""
        leading = flat.shape[:-1]
        views = {}
        for name, shape in self.shapes.items():
            start = self.offsets[name]
            views[name] = flat[..., start : start + math.prod(shape)].view((*leading, *shape))
        return views

    def named(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        """``views`` under all names: a tied parameter appears under each of its names."""
        views = self.views(flat)
        return views | {alias: views[name] for alias, name in self.ties.items()}

    def flatten(self, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Copy ``tensors`` by name into a flat vector [P]."""
        return torch.cat([tensors[name].detach().reshape(-1) for name in self.shapes])

    def from_module(self, module: torch.nn.Module) -> torch.Tensor:
        """Copy the current parameters of ``module`` into a flat vector [P]."""
        return self.flatten(dict(module.named_parameters()))


def slots(module: torch.nn.Module, spec: ParamSpec) -> tuple[tuple[str, str], ...]:
    """Additional attributes that tied parameters must replace in ``module``: (alias, name).

    If a layer appears twice in the model, its weight has two names but is a single attribute.
    """

    def attribute(name: str) -> tuple[int, str]:
        owner, _, last = name.rpartition(".")
        return id(module.get_submodule(owner)), last

    seen = {attribute(name) for name in spec.shapes}
    attributes = []
    for alias, name in spec.ties.items():
        if attribute(alias) not in seen:
            seen.add(attribute(alias))
            attributes.append((alias, name))
    return tuple(attributes)


def call_with(
    module: torch.nn.Module,
    params: Mapping[str, torch.Tensor],
    aliases: tuple[tuple[str, str], ...],
    inputs: torch.Tensor,
) -> torch.Tensor:
    """The module's output for ``inputs`` with the parameters ``params``.

    Args:
        params: parameters by name; tied parameters appear once.
        aliases: additional attributes of tied parameters, from ``slots``.
        inputs: [batch, ...].
    """
    tensors = {**params, **{alias: params[name] for alias, name in aliases}}
    # With tie_weights=True torch would search for ties in every call, and would not restore a layer
    # that appears twice in the model.
    output: torch.Tensor = torch.func.functional_call(module, tensors, (inputs,), tie_weights=False)
    return output


def _check_initialised(module: torch.nn.Module) -> None:
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if torch.nn.parameter.is_lazy(tensor):
            raise ConfigError(
                f"model {type(module).__name__}: {name!r} has no shape yet, because its layer is "
                "lazy. Call the model once on a sample first, or give the layer its sizes."
            )
        if tensor.is_meta:
            raise ConfigError(
                f"model {type(module).__name__}: {name!r} has no values, because it is on the meta "
                "device. Build the model on the CPU."
            )


def _check_memory(module: torch.nn.Module, trainable: Mapping[str, torch.nn.Parameter]) -> None:
    owners: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.numel():
            owners.setdefault(tensor.untyped_storage().data_ptr(), {})[name] = tensor
    for name, parameter in trainable.items():
        sizes = zip(parameter.shape, parameter.stride(), strict=True)
        if parameter.numel() and any(size > 1 and stride == 0 for size, stride in sizes):
            raise ConfigError(
                f"parameter {name!r} is expanded: several of its elements share memory, but would "
                "be trained separately. Expand it in forward, or use a .clone() as the parameter."
            )
    for sharing in owners.values():
        for (key, first), (alias, second) in combinations(sharing.items(), 2):
            if {key, alias} & trainable.keys() and _overlap(first, second):
                raise ConfigError(
                    f"{key!r} and {alias!r} are two tensors of model {type(module).__name__} that "
                    "share memory, but would be trained separately. Assign one nn.Parameter to "
                    "both names to tie them, or .clone() one of them."
                )


def _overlap(first: torch.Tensor, second: torch.Tensor) -> bool:
    (low, high), (begin, end) = _span(first), _span(second)
    if high <= begin or end <= low:
        return False
    if first.is_contiguous() and second.is_contiguous():
        return True
    elements = [
        torch.as_strided(torch.arange(max(high, end)), t.shape, t.stride(), t.storage_offset())
        for t in (first, second)
    ]
    return bool(torch.isin(*elements).any())


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """First storage element of ``tensor``, and the element after its last."""
    start = int(tensor.storage_offset())
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return start, start + sum((size - 1) * int(stride) for size, stride in steps) + 1
