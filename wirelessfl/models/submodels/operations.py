"""Tracing of a model, and properties of operations on tensors with neurons along axis 1."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional as F

from channels.concurrency import process_state
from wirelessfl.models.parts import StreamDropout

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
UPSAMPLING = frozenset(
    {"upsample", "upsamplingnearest2d", "upsamplingbilinear2d", "interpolate"}
)  # of pixels
REDUCTIONS = frozenset({"mean", "sum", "amax", "amin"})
RESHAPES = frozenset({"flatten", "view", "reshape", "squeeze", "unsqueeze"})  # keep element order


TRANSFORMERS = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
"""Layers of torch that consist of further layers with neurons."""


class Tracer(fx.Tracer):
    """Tracer whose leaves are torch layers and ``StreamDropout``; records the layer that fails.

    Args:
        opaque: names of further modules that are single operations.
    """

    def __init__(self, opaque: Collection[str] = ()) -> None:
        super().__init__()
        self.opaque = frozenset(opaque)
        self.failed = ""
        self._thread = 0

    def trace(self, *args: Any, **kwargs: Any) -> fx.Graph:
        """The graph of a module.

        Meanwhile fx replaces methods of all modules; those of other threads work as before.
        """
        with process_state:
            self._thread = threading.get_ident()
            mha: Any = torch.backends.mha
            enabled = mha.get_fastpath_enabled
            try:
                # The fused kernels of transformers depend on properties of tensors.
                mha.get_fastpath_enabled = lambda: self._elsewhere and enabled()
                return super().trace(*args, **kwargs)
            finally:
                mha.get_fastpath_enabled = enabled

    @property
    def _elsewhere(self) -> bool:
        """Whether another thread calls a module meanwhile."""
        return threading.get_ident() != self._thread

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """The attribute of a module, as a part of the graph if it is a parameter."""
        if self._elsewhere:
            return attr_val
        return super().getattr(attr, attr_val, parameter_proxy_cache)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether ``m`` is a single operation of the graph."""
        if module_qualified_name in self.opaque or isinstance(m, StreamDropout):
            return True
        return type(m) not in TRANSFORMERS and super().is_leaf_module(m, module_qualified_name)

    def call_module(
        self,
        m: nn.Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Trace a call of ``m``."""
        if self._elsewhere:
            return forward(*args, **kwargs)
        if type(m) is nn.TransformerEncoder and self.path_of_module(m) not in self.opaque:
            forward = partial(_one_after_another, m)
        try:
            return super().call_module(m, forward, args, kwargs)
        except Exception:
            self.failed = self.failed or self.path_of_module(m)  # keep the innermost module
            raise


def _one_after_another(
    encoder: nn.TransformerEncoder,
    src: Any,
    mask: Any = None,
    src_key_padding_mask: Any = None,
    is_causal: bool | None = None,
) -> Any:
    """The layers of an encoder, without its choice of kernels, which depends on tensors."""
    for layer in encoder.layers:
        src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
    return src if encoder.norm is None else encoder.norm(src)


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
    """Whether a pooling, upsampling or reduction of [batch, channels, ...] keeps these two axes."""
    if kind in UPSAMPLING:
        return len(before) > 2
    if kind in POOLING:  # with one axis fewer, torch treats the batch as channels
        return len(before) == int(kind[-2]) + 2
    if kind not in REDUCTIONS:
        return False
    return _acts_on_pixels(node, before)


def axis_after(node: fx.Node, kind: str, before: tuple[int, ...], axis: int) -> int | None:
    """Axis of neurons after a reduction over other axes than theirs and the batch; None if unknown.

    Args:
        node: the operation.
        kind: its plain name.
        before: shape of its input.
        axis: axis of the neurons in the input.
    """
    if kind not in REDUCTIONS:
        return None
    axes = _axes(node)
    if not axes or not all(isinstance(dim, int) for dim in axes):
        return None
    reduced = {dim % len(before) for dim in axes}
    if reduced & {0, axis}:
        return None
    keeps = node.kwargs.get("keepdim", node.args[2] if len(node.args) > 2 else False)
    return axis if keeps else axis - sum(dim < axis for dim in reduced)


def _axes(node: fx.Node) -> Sequence[Any]:
    axes = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
    if axes is None:
        return ()
    return axes if isinstance(axes, tuple | list) else (axes,)


def _acts_on_pixels(node: fx.Node, before: tuple[int, ...]) -> bool:
    """Whether the axes of an operation are given, and are neither of the first two."""
    pixels = [isinstance(axis, int) and axis % len(before) > 1 for axis in _axes(node)]
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
