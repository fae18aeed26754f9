"""The layers of a module that is a chain, which ``StackedExecutor`` trains without autograd."""

from __future__ import annotations

from collections.abc import Sequence

from torch import fx, nn

from wirelessfl.models.dropout import StreamDropout
from wirelessfl.submodels import ParamSpec
from wirelessfl.submodels.operations import Tracer
from wirelessfl.submodels.tracing import first_sentence
from wirelessfl.training.layers import (
    Conv2d,
    Dropout,
    Flatten,
    Free,
    FromImages,
    Layer,
    Linear,
    ReLU,
    Scale,
    ToImages,
)
from wirelessfl.training.objective import Objective

POINTWISE = (nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Softplus)
POOLING = (nn.MaxPool2d, nn.AvgPool2d)


class NotAChainError(Exception):
    """The model is not a chain of supported layers."""


def chain(objective: Objective) -> list[Layer]:
    """The layers of ``objective``'s module, from input to logits.

    Raises:
        NotAChainError: the module is not a chain; the message says why.
    """
    module = objective.module
    try:
        graph = Tracer().trace(module)
    except Exception as error:  # a user's forward may raise anything when traced
        raise NotAChainError(f"it cannot be traced ({first_sentence(error)})") from error
    layers: list[Layer] = []
    before: fx.Node | None = None
    seen: set[str] = set()
    for node in graph.nodes:
        if node.op == "placeholder" and before is None:
            before = node
            continue
        if node.args != (before,) or node.kwargs:
            raise NotAChainError(f"{node.name!r} has inputs other than the previous layer's output")
        if node.op == "output":
            break
        if node.op != "call_module":
            raise NotAChainError(f"{node.name!r} is not a module")
        layer = module.get_submodule(str(node.target))
        if node.target in seen and any(True for _ in layer.parameters()):
            raise NotAChainError(f"{node.target!r} is used twice")
        seen.add(str(node.target))
        layers += _layers(str(node.target), layer, layers, objective.spec)
        before = node
    if not layers or not any(isinstance(layer, Linear) for layer in layers):
        raise NotAChainError("there is no linear layer")
    _check_parameters(layers, objective.spec)
    if _images(layers):
        raise NotAChainError("its output is not flat")
    return _with_scales(_pool_first(layers))


def _check_parameters(layers: Sequence[Layer], spec: ParamSpec) -> None:
    """Raise unless the layers train exactly the parameters of ``spec``.

    Raises:
        NotAChainError: a parameter belongs to no layer, so its gradient would not be written, or a
            layer's weight is computed from other parameters.
    """
    trained = {
        name
        for layer in layers
        if isinstance(layer, Linear | Conv2d)
        for name in (layer.weight, layer.bias)
        if name is not None
    }
    if trained != spec.shapes.keys():
        name = min(trained ^ spec.shapes.keys())
        why = "is not used by a layer" if name in spec.shapes else "is not a trainable parameter"
        raise NotAChainError(f"{name!r} {why}")


def _with_scales(layers: list[Layer]) -> list[Layer]:
    """Insert a layer that scales inputs before each layer with parameters except the first."""
    found: list[Layer] = []
    for layer in layers:
        if isinstance(layer, Linear | Conv2d) and any(one.trainable for one in found):
            found.append(Scale(layer.weight, images=isinstance(layer, Conv2d)))
        found.append(layer)
    return found


def _pool_first(layers: list[Layer]) -> list[Layer]:
    """Move ReLU after max-pooling, which gives the same function with fewer operations."""
    swapped = list(layers)
    for i in range(len(layers) - 1):
        one, two = layers[i], layers[i + 1]
        if isinstance(one, ReLU) and isinstance(two, Free) and type(two.module) is nn.MaxPool2d:
            swapped[i : i + 2] = [two, one]
    return swapped


def _images(layers: list[Layer]) -> bool:
    """Whether ``layers`` output images side by side."""
    known = [layer.gives_images for layer in layers if layer.gives_images is not None]
    return bool(known) and known[-1]


def _layers(name: str, module: nn.Module, before: list[Layer], spec: ParamSpec) -> list[Layer]:
    """The layers that implement ``module`` when it follows the layers ``before``."""
    images, kind = _images(before), type(module)
    for parameter, _ in module.named_parameters():
        if f"{name}.{parameter}" not in spec.shapes:
            raise NotAChainError(f"{name}.{parameter} is frozen or tied to another parameter")
    bias = f"{name}.bias" if getattr(module, "bias", None) is not None else None
    if isinstance(module, nn.Identity):
        return []
    if kind is nn.Flatten and module.start_dim == 1 and module.end_dim == -1:
        return [FromImages() if images else Flatten()]
    if kind is nn.Linear and not images:
        return [Linear(f"{name}.weight", bias)]
    if isinstance(module, nn.Conv2d) and kind is nn.Conv2d:
        simple = module.groups == 1 and module.padding_mode == "zeros"
        if simple and not isinstance(module.padding, str) and (images or not before):
            size = (module.stride, module.padding, module.dilation)
            layer = Conv2d(f"{name}.weight", bias, *size)
            return [layer] if images else [ToImages(), layer]
    if kind is nn.ReLU and before:
        return [ReLU(in_place=before[-1].trainable)]
    if isinstance(module, StreamDropout) and not images and before:
        return [Dropout(module)] if module.p > 0 else []
    if (kind in POINTWISE and before) or (kind in POOLING and images):
        return [Free(module)]
    raise NotAChainError(f"{name!r}, a {kind.__name__}, is not supported at this position")
