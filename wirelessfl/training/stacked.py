"""The fast executor of plain networks: stacked layers of many clients, handwritten backward pass.

It trains chains of linear layers, convolutions, activations, pooling, ``StreamDropout`` and
flattening; ``VmapExecutor`` trains all other models. It is faster for three reasons: it builds no
autograd graph of the layers, fuses plain SGD into the product that computes a weight's gradient,
and runs one grouped convolution for all clients in channels-last memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from wirelessfl.base.errors import ConfigError
from wirelessfl.models.losses import CrossEntropy, Loss
from wirelessfl.models.parts import StreamDropout
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.models.submodels.operations import Tracer
from wirelessfl.models.submodels.tracing import first_sentence
from wirelessfl.training.batches import Batch, Batches
from wirelessfl.training.cohort import (
    NO_TERMS,
    Cohort,
    Outputs,
    Penalty,
    Terms,
    need_features,
    total,
)
from wirelessfl.training.executor import TrainingData, after_training
from wirelessfl.training.layers import (
    Conv2d,
    Dropout,
    Flatten,
    Free,
    FromImages,
    Layer,
    Linear,
    Params,
    ReLU,
    Scale,
    ToImages,
    Write,
)
from wirelessfl.training.objective import Objective
from wirelessfl.training.recording import TensorExecutor
from wirelessfl.training.rules import ClientRule, checked_step, plain_sgd

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
    """Raise unless the layers train exactly the parameters of ``spec``."""
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
    scaled: list[Layer] = []
    for layer in layers:
        if isinstance(layer, Linear | Conv2d) and any(previous.trainable for previous in scaled):
            scaled.append(Scale(layer.weight, images=isinstance(layer, Conv2d)))
        scaled.append(layer)
    return scaled


def _pool_first(layers: list[Layer]) -> list[Layer]:
    """Move ReLU after max-pooling, which gives the same function with fewer operations."""
    swapped = list(layers)
    for i in range(len(layers) - 1):
        layer, following = layers[i], layers[i + 1]
        if (
            isinstance(layer, ReLU)
            and isinstance(following, Free)
            and type(following.module) is nn.MaxPool2d
        ):
            swapped[i : i + 2] = [following, layer]
    return swapped


def _images(layers: list[Layer]) -> bool:
    """Whether ``layers`` output images side by side."""
    layouts = [layer.gives_images for layer in layers if layer.gives_images is not None]
    return bool(layouts) and layouts[-1]


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


def _terms(cohort: Cohort, spec: ParamSpec) -> Terms:
    if need_features(cohort.penalties):
        raise ConfigError(
            'executor "stacked" does not compute features, which a term of the loss compares: '
            'choose executor "vmap".'
        )
    return Terms.of(cohort, spec)


class StackedExecutor(TensorExecutor):
    """Trains chains of layers without autograd.

    Args:
        layers: the layers of ``objective``'s module, if they are already known.
    """

    name = "stacked"

    def __init__(
        self,
        objective: Objective,
        data: TrainingData,
        chunk: int,
        *,
        recorded: bool | None = None,
        layers: list[Layer] | None = None,
    ) -> None:
        super().__init__(objective, data, chunk, recorded=recorded)
        try:
            self.layers = chain(objective) if layers is None else layers
        except NotAChainError as error:
            raise ConfigError(
                f'executor "stacked" cannot train model {type(objective.module).__name__}: '
                f'{error}. Choose executor "vmap".'
            ) from error

    def _layers(self, params: Params) -> list[Layer]:
        """The layers that train ``params``."""
        return self.layers

    @torch.no_grad()
    def _steps(
        self, rule: ClientRule, spec: ParamSpec, cohort: Cohort, batches: Batches
    ) -> dict[str, Tensor]:
        params = cohort.start.clone()
        tensors = spec.views(params)
        state = rule.begin(cohort)
        flat = None if plain_sgd(rule) else torch.empty_like(params)
        terms = _terms(cohort, spec)
        descent = Write(tensors, rule.shrink, -rule.lr)
        for step in range(cohort.local_steps):
            batch = self.data.of_step(batches, step)
            if flat is None:  # plain SGD, fused
                self._back(tensors, descent, batch, terms)
                continue
            self._back(tensors, Write(spec.views(flat), 0.0, 1.0), batch, terms)
            params, state = checked_step(rule, params, flat, state, cohort)
            tensors = spec.views(params)
        return after_training(rule, params, state, cohort)

    def _evaluated(self, params: Params, factors: Params, x: Tensor, keys: Tensor) -> Tensor:
        """Logits [clients, batch, classes] in evaluation mode, in the precision of training."""
        x, params = self._rounded(x, params)
        params = {**params, **factors}
        for layer in self._layers(params):
            if not layer.training_only:
                x, _ = layer.forward(x, params, keys)
        return x.float()

    def _rounded(self, x: Tensor, params: Params) -> tuple[Tensor, Params]:
        """Samples and parameters in the precision of products."""
        if self.objective.precision != "bf16":
            return x, params
        return x.bfloat16(), {name: value.bfloat16() for name, value in params.items()}

    @torch.no_grad()
    def gradients(self, spec: ParamSpec, params: Tensor, batch: Batch) -> Tensor:
        """Gradients [clients, P] at ``params`` [clients, P], for one batch per client."""
        flat = torch.empty(params.shape, dtype=params.dtype, device=params.device)
        self._back(spec.views(params), Write(spec.views(flat), 0.0, 1.0), batch)
        return flat

    def _back(self, params: Params, write: Write, batch: Batch, terms: Terms = NO_TERMS) -> None:
        """Run one forward and backward pass; gradients are written as ``write`` specifies."""
        x, y, weight, keys = batch
        factors = {Scale.name_of(name): value for name, value in terms.factors.items()}
        anchor_logits = [
            {n: self._evaluated(tensors, factors, x, keys) for n, tensors in anchors.items()}
            for anchors in terms.anchors
        ]
        x, params = self._rounded(x, params)
        params = {**params, **factors}
        layers = self._layers(params)
        saved: list[Any] = []
        for layer in layers:
            x, kept = layer.forward(x, params, keys)
            saved.append(kept)
        rounded, x = x.dtype, x.float()
        criterion = self.objective.criterion
        if isinstance(criterion, CrossEntropy) and not criterion.label_smoothing and y.dim() == 2:
            # Gradient of cross-entropy: softmax minus the one-hot label, times the sample's weight.
            grad = x.softmax(-1)
            grad.scatter_add_(2, y[..., None], grad.new_full((), -1.0).expand(*y.shape, 1))
            grad *= weight[..., None]
        else:
            grad = _loss_gradient(criterion, x, y, weight)
        if terms.penalties:
            grad += _penalty_gradient(terms.penalties, x, anchor_logits, batch)
        grad = grad.to(rounded)
        first = next(i for i, layer in enumerate(layers) if layer.trainable)
        for i in range(len(layers) - 1, first - 1, -1):
            grad = layers[i].backward(grad, saved[i], params, write, i > first)


def _loss_gradient(loss: Loss, outputs: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Gradient of the weighted loss with respect to the outputs [clients, batch, ...].

    The loss depends on one sample only, so the samples of all clients can form one batch.
    """
    with torch.enable_grad():
        leaf = outputs.detach().flatten(0, 1).requires_grad_()
        values = loss.values(leaf, y.flatten(0, 1))
    return torch.autograd.grad(values, leaf, weight.flatten())[0].view_as(outputs)


def _penalty_gradient(
    penalties: tuple[Penalty, ...],
    logits: Tensor,
    anchor_logits: Sequence[Mapping[str, Tensor]],
    batch: Batch,
) -> Tensor:
    """Gradient of the weighted terms with respect to the logits [clients, batch, classes].

    Each term depends on one sample only, so the samples of all clients can form one batch.
    """
    with torch.enable_grad():
        leaf = logits.detach().flatten(0, 1).requires_grad_()
        others = [{n: Outputs(v.flatten(0, 1)) for n, v in of.items()} for of in anchor_logits]
        loss = total(penalties, Outputs(leaf), others, batch.y.flatten(0, 1))
    return torch.autograd.grad(loss, leaf, batch.weight.flatten())[0].view_as(logits)


def why_not_stacked(
    objective: Objective, data: TrainingData, kind: type[StackedExecutor] = StackedExecutor
) -> str | None:
    """Why an executor cannot train ``objective``; None if its gradients are correct.

    Its gradients are compared with autograd's for one client and for two.
    """
    try:
        fast = kind(objective, data, 2, layers=chain(objective))
    except NotAChainError as error:
        return str(error)
    for clients in (1, 2):
        try:
            grads, expected = _both_gradients(fast, clients)
        except (RuntimeError, ValueError, IndexError) as error:  # from a misplaced layer
            return f"its layers cannot be stacked ({first_sentence(error)})"
        for name, value in expected.items():
            if not torch.allclose(grads[name], value, rtol=1e-3, atol=1e-5, equal_nan=True):
                return f"stacked layers give a different gradient of {name!r} (does it have hooks?)"
    return None


def _both_gradients(
    fast: StackedExecutor, clients: int
) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
    """Gradients on a few samples, computed by stacked layers and by autograd."""
    objective = fast.objective
    x, y = fast.data.first(4)
    flat = objective.spec.from_module(objective.module)
    weight = x.new_full((len(y),), 1 / len(y), dtype=torch.float32)
    key = torch.zeros(2, dtype=torch.int32, device=x.device)
    objective.module.train()
    batch = Batch(x, y, weight, key)
    repeated = Batch(*(part.expand(clients, *part.shape) for part in batch))
    params = flat.expand(clients, *flat.shape)
    grads = objective.spec.views(fast.gradients(objective.spec, params, repeated))
    alone = objective.gradients(objective.spec.views(flat), batch)
    return grads, {name: value.expand(clients, *value.shape) for name, value in alone.items()}
