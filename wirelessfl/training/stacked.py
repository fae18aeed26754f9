"""The fast engine for plain networks: layers of many clients at once, backward by hand.

It trains what is a chain of linear layers, convolutions, activations, pooling, ``StreamDropout``
and flattening, with cross-entropy at its end, and leaves everything else to ``VmapExecutor``.
Three things make it faster: no autograd graph, plain SGD within the product that gives a weight's
gradient, and convolutions of all clients in one call on channels-last memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from wirelessfl.errors import ConfigError
from wirelessfl.models.dropout import StreamDropout
from wirelessfl.submodels import ParamSpec
from wirelessfl.submodels.operations import Tracer
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
    ToImages,
    Write,
)
from wirelessfl.training.objective import Objective
from wirelessfl.training.program import TensorExecutor
from wirelessfl.training.rules import ClientRule

POINTWISE = (nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Softplus)
POOLING = (nn.MaxPool2d, nn.AvgPool2d)


class NotAChainError(Exception):
    """A model, or a place in it, that this engine does not know."""


def chain(objective: Objective) -> list[Layer]:
    """The layers of ``objective``'s module, input to logits.

    Raises:
        NotAChainError: it is none; the message says what stands in the way.
    """
    module = objective.module
    try:
        graph = Tracer().trace(module)
    except Exception as error:  # whatever a user's forward raises when it is traced
        raise NotAChainError(f"it cannot be traced ({str(error).splitlines()[0]})") from error
    layers: list[Layer] = []
    before: fx.Node | None = None
    seen: set[str] = set()
    for node in graph.nodes:
        if node.op == "placeholder" and before is None:
            before = node
            continue
        if node.args != (before,) or node.kwargs:
            raise NotAChainError(f"{node.name!r} is not fed by the layer before it alone")
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
    if _images(layers):
        raise NotAChainError("its output is not flat")
    return _pool_first(layers)


def _pool_first(layers: list[Layer]) -> list[Layer]:
    """ReLU behind max-pooling instead of before it: the same function, on fewer numbers."""
    swapped = list(layers)
    for i in range(len(layers) - 1):
        one, two = layers[i], layers[i + 1]
        if isinstance(one, ReLU) and isinstance(two, Free) and type(two.module) is nn.MaxPool2d:
            swapped[i : i + 2] = [two, one]
    return swapped


def _images(layers: list[Layer]) -> bool:
    """Whether what comes out of ``layers`` are images."""
    said = [layer.gives_images for layer in layers if layer.gives_images is not None]
    return bool(said) and said[-1]


def _layers(name: str, module: nn.Module, before: list[Layer], spec: ParamSpec) -> list[Layer]:
    """The layers that stand for ``module``, given those before it."""
    images, kind = _images(before), type(module)
    for parameter, _ in module.named_parameters():
        if f"{name}.{parameter}" not in spec.shapes:
            raise NotAChainError(f"{name}.{parameter} is frozen, or tied to another layer's")
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
    raise NotAChainError(f"{name!r} is a {kind.__name__}, or stands in an unusual place")


def _terms(cohort: Cohort, spec: ParamSpec) -> Terms:
    """Those of the cohort's loss.

    Raises:
        ConfigError: they need features, and there are logits alone.
    """
    if need_features(cohort.penalties):
        raise ConfigError(
            'executor "stacked" has no features, which a term of the loss compares. Choose "vmap".'
        )
    return Terms.of(cohort, spec)


class StackedExecutor(TensorExecutor):
    """Chains of layers, trained without autograd.

    Raises:
        ConfigError: the model is no such chain.
    """

    name = "stacked"

    def __init__(
        self, objective: Objective, data: TrainingData, chunk: int, *, recorded: bool | None = None
    ) -> None:
        super().__init__(objective, data, chunk, recorded=recorded)
        try:
            self.layers = chain(objective)
        except NotAChainError as error:
            raise ConfigError(
                f'executor "stacked" cannot train model {type(objective.module).__name__}: '
                f'{error}. Choose "vmap".'
            ) from error
        self._first = next(i for i, layer in enumerate(self.layers) if layer.trainable)

    @torch.no_grad()
    def _steps(
        self, rule: ClientRule, spec: ParamSpec, cohort: Cohort, batches: Batches
    ) -> dict[str, Tensor]:
        params = cohort.start.clone()
        tensors = spec.views(params)
        state = rule.begin(cohort)
        flat = None if rule.plain_sgd else torch.empty_like(params)
        terms = _terms(cohort, spec)
        for step in range(cohort.local_steps):
            samples = self.data.batch(batches.index[:, step])
            batch = Batch(*samples, batches.weight[:, step], batches.keys[:, step])
            if flat is None:  # plain SGD, fused
                self._back(tensors, Write(tensors, rule.shrink, -rule.lr), batch, terms)
                continue
            self._back(tensors, Write(spec.views(flat), 0.0, 1.0), batch, terms)
            params, state = rule.step(params, flat, state, cohort)
            tensors = spec.views(params)
        return after_training(rule, params, state, cohort)

    def _evaluated(self, params: Params, x: Tensor, keys: Tensor) -> Tensor:
        """Logits [clients, batch, classes] in evaluation mode."""
        for layer in self.layers:
            if not layer.training_only:
                x, _ = layer.forward(x, params, keys)
        return x

    @torch.no_grad()
    def gradients(self, spec: ParamSpec, params: Tensor, batch: Batch) -> Tensor:
        """Gradients [clients, P] at ``params`` [clients, P] of one batch each."""
        flat = torch.empty(params.shape, device=params.device)
        self._back(spec.views(params), Write(spec.views(flat), 0.0, 1.0), batch)
        return flat

    def _back(self, params: Params, write: Write, batch: Batch, terms: Terms = NO_TERMS) -> None:
        """One step forward and back; gradients go where ``write`` says."""
        x, y, weight, keys = batch
        taught = [
            {name: self._evaluated(tensors, x, keys) for name, tensors in anchors.items()}
            for anchors in terms.anchors
        ]
        saved: list[Any] = []
        for layer in self.layers:
            x, kept = layer.forward(x, params, keys)
            saved.append(kept)
        # Cross-entropy: softmax less the label, times the sample's weight.
        grad = x.softmax(-1)
        grad.scatter_add_(2, y[..., None], grad.new_full((), -1.0).expand(*y.shape, 1))
        grad *= weight[..., None]
        if terms.penalties:
            grad += _slope(terms.penalties, x, taught, batch)
        for i in range(len(self.layers) - 1, self._first - 1, -1):
            grad = self.layers[i].backward(grad, saved[i], params, write, i > self._first)


def _slope(
    penalties: tuple[Penalty, ...],
    logits: Tensor,
    taught: Sequence[Mapping[str, Tensor]],
    batch: Batch,
) -> Tensor:
    """Gradient of the weighted terms with respect to the logits [clients, batch, classes].

    A term is a sample's own, so that samples of all clients make one batch.
    """
    with torch.enable_grad():
        leaf = logits.detach().flatten(0, 1).requires_grad_()
        others = [{n: Outputs(v.flatten(0, 1)) for n, v in of.items()} for of in taught]
        loss = total(penalties, Outputs(leaf), others, batch.y.flatten())
    return torch.autograd.grad(loss, leaf, batch.weight.flatten())[0].view_as(logits)


def why_not_stacked(objective: Objective, data: TrainingData) -> str | None:
    """Why ``StackedExecutor`` cannot train ``objective``; None where it gives the right gradients.

    Tried for one client and for two, against autograd.
    """
    try:
        chain(objective)
    except NotAChainError as error:
        return str(error)
    for clients in (1, 2):
        try:
            found, expected = _both_gradients(objective, data, clients)
        except (RuntimeError, ValueError, IndexError) as error:  # of layers in unusual places
            return f"its layers do not stack ({str(error).splitlines()[0]})"
        for name, value in expected.items():
            if not torch.allclose(found[name], value, rtol=1e-3, atol=1e-5, equal_nan=True):
                return f"stacked layers give another gradient of {name!r}: has it hooks?"
    return None


def _both_gradients(
    objective: Objective, data: TrainingData, clients: int
) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
    """Gradients of a few samples by stacked layers, and by autograd."""
    fast = StackedExecutor(objective, data, clients)
    x, y = data.first(4)
    flat = objective.spec.from_module(objective.module)
    weight = x.new_full(y.shape, 1 / len(y), dtype=torch.float32)
    key = torch.zeros(2, dtype=torch.int32, device=x.device)
    objective.module.train()
    batch = Batch(x, y, weight, key)
    alike = Batch(*(part.expand(clients, *part.shape) for part in batch))
    params = flat.expand(clients, *flat.shape)
    found = objective.spec.views(fast.gradients(objective.spec, params, alike))
    alone = objective.gradients(objective.spec.views(flat), batch)
    return found, {name: value.expand(clients, *value.shape) for name, value in alone.items()}
