"""Tracing of a model, and properties of operations on tensors with neurons along axis 1."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional as F

from wirelessfl.models.dropout import StreamDropout

# Plain names: "leakyrelu" stands for nn.LeakyReLU and F.leaky_relu, "relu" also for x.relu_().
POINTWISE = frozenset(
    (
        *("relu", "relu6", "leakyrelu", "elu", "celu", "selu", "gelu", "silu", "mish", "tanh"),
        *("sigmoid", "logsigmoid", "softplus", "softsign", "hardtanh", "hardswish", "hardsigmoid"),
        *("hardshrink", "softshrink", "tanhshrink"),
        *("dropout", "dropout1d", "dropout2d", "dropout3d", "alphadropout", "featurealphadropout"),
        *("streamdropout", "identity", "clone", "contiguous", "float"),
        *("add", "iadd", "sub", "isub", "mul", "imul", "div", "truediv", "neg", "abs", "square"),
        *("pow", "exp", "clamp"),
    )
)
POOLING = frozenset(
    f"{kind}pool{axes}d" for kind in ("max", "avg", "adaptivemax", "adaptiveavg") for axes in "123"
)
REDUCTIONS = frozenset({"mean", "sum", "amax", "amin"})
RESHAPES = frozenset({"flatten", "view", "reshape", "squeeze", "unsqueeze"})  # keep element order


class Tracer(fx.Tracer):
    """Tracer whose leaves are torch layers and ``StreamDropout``; records the layer that fails."""

    failed = ""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether ``m`` is a single operation of the graph."""
        return isinstance(m, StreamDropout) or super().is_leaf_module(m, module_qualified_name)

    def call_module(
        self,
        m: nn.Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Trace a call of ``m``."""
        try:
            return super().call_module(m, forward, args, kwargs)
        except Exception:
            self.failed = self.failed or self.path_of_module(m)  # keep the innermost module
            raise


def plain_name(node: fx.Node, layer: object) -> str:
    """Plain name of a layer, method or torch function; empty for any other function."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if node.op == "call_module":
        name = type(layer).__name__
    elif node.op == "call_function":
        modules = (torch, F, operator)
        if not any(getattr(module, name, None) is node.target for module in modules):
            return ""
    return name.replace("_", "").lower()


def keeps_channels(node: fx.Node, kind: str, before: tuple[int, ...]) -> bool:
    """Whether a pooling or reduction of a tensor [batch, channels, ...] keeps these two axes."""
    if kind in POOLING:  # with one axis fewer, torch treats the batch as channels
        return len(before) == int(kind[-2]) + 2
    if kind not in REDUCTIONS:
        return False
    return _acts_on_pixels(node, before)


def _acts_on_pixels(node: fx.Node, before: tuple[int, ...]) -> bool:
    """Whether the axes of an operation are given, and are neither of the first two."""
    axes = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
    each = axes if isinstance(axes, tuple | list) else (axes,)
    pixels = [isinstance(axis, int) and axis % len(before) > 1 for axis in each]
    return bool(pixels) and all(pixels)


def fixes_width(node: fx.Node, kind: str, before: tuple[int, ...]) -> bool:
    """Whether a reshape of a tensor of shape ``before`` needs a certain size of axis 1.

    The size differs in a submodel: a view fixes it, and squeeze removes the axis of one neuron.
    """
    if kind == "squeeze":
        return not _acts_on_pixels(node, before)
    if kind not in ("view", "reshape"):
        return False
    sizes = node.args[1:]
    if len(sizes) == 1 and isinstance(sizes[0], tuple | list):
        sizes = tuple(sizes[0])
    return bool(node.kwargs) or (len(sizes) > 1 and isinstance(sizes[1], int) and sizes[1] > 0)
