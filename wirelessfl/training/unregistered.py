"""Refuses modules with trainable tensors that are not registered as parameters.

Clients have copies of the registered parameters only, so other tensors would never be trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from wirelessfl.errors import ConfigError


def check_registered(module: nn.Module, loss: Tensor, again: Tensor) -> None:
    """Raise if the loss depends on a trainable tensor that is not a parameter of ``module``.

    Args:
        module: the model.
        loss: its loss, with the graph of its gradients.
        again: the loss of a second forward pass. A tensor of one pass alone is none to be trained.

    Raises:
        ConfigError: names the tensor if it is found in an attribute of the module.
    """
    registered = {id(parameter) for parameter in module.parameters()}
    lasting = {id(leaf) for leaf in _leaves(again)} - registered
    for leaf in _leaves(loss):
        if id(leaf) not in lasting:
            continue
        name, remedy = _found(module, leaf)
        raise ConfigError(
            f"model {type(module).__name__} does not register {name} as a parameter, so it would "
            f"never be trained: use {remedy}, or requires_grad=False for a constant."
        )


def _leaves(loss: Tensor) -> Iterator[Tensor]:
    """The tensors for which ``backward`` would accumulate gradients."""
    seen, nodes = set[Any](), [loss.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(leaf := getattr(node, "variable", None), Tensor):
            yield leaf
        nodes += [following for following, _ in node.next_functions]


def _found(module: nn.Module, leaf: Tensor) -> tuple[str, str]:
    """The name of a tensor in the attributes of a module, and how to register it."""
    for prefix, layer in module.named_modules():
        for name, value in vars(layer).items():
            if name.startswith("_"):
                continue
            for place, inside in _entries(f"{prefix}.{name}" if prefix else name, value):
                form = "" if inside is value else "Dict" if isinstance(value, Mapping) else "List"
                if inside is leaf:
                    return repr(place), f"nn.Parameter{form}"
                if isinstance(inside, nn.Module) and any(p is leaf for p in inside.parameters()):
                    return f"the layer {place!r}", f"nn.Module{form}"
    return f"a trainable tensor of shape {list(leaf.shape)}", "nn.Parameter in the module"


def _entries(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The modules and tensors in nested lists, tuples and dicts, with their places."""
    if isinstance(value, list | tuple):
        for index, entry in enumerate(value):
            yield from _entries(f"{place}[{index}]", entry)
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _entries(f"{place}[{key!r}]", entry)
    elif isinstance(value, Tensor | nn.Module):
        yield place, value
