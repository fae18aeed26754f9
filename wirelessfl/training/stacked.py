"""The fast executor for plain networks: stacked layers of many clients, handwritten backward pass.

It trains chains of linear layers, convolutions, activations, pooling, ``StreamDropout`` and
flattening; ``VmapExecutor`` trains all other models. It is faster for three reasons: it builds no
autograd graph of the layers, fuses plain SGD into the product that computes a weight's gradient,
and runs one grouped convolution for all clients in channels-last memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from wirelessfl.errors import ConfigError
from wirelessfl.losses import CrossEntropy, Loss
from wirelessfl.submodels import ParamSpec
from wirelessfl.submodels.tracing import first_sentence
from wirelessfl.training.batches import Batch, Batches
from wirelessfl.training.chain import NotAChainError, chain
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
from wirelessfl.training.layers import Layer, Params, Scale, Write
from wirelessfl.training.objective import Objective
from wirelessfl.training.program import TensorExecutor
from wirelessfl.training.rules import ClientRule, checked_step


def _terms(cohort: Cohort, spec: ParamSpec) -> Terms:
    """The further terms of the cohort's loss.

    Raises:
        ConfigError: a term needs features, which this executor does not compute.
    """
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

    Raises:
        ConfigError: the model is not a chain of supported layers.
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

    def _evaluated(self, params: Params, x: Tensor, keys: Tensor) -> Tensor:
        """Logits [clients, batch, classes] in evaluation mode."""
        for layer in self.layers:
            if not layer.training_only:
                x, _ = layer.forward(x, params, keys)
        return x

    @torch.no_grad()
    def gradients(self, spec: ParamSpec, params: Tensor, batch: Batch) -> Tensor:
        """Gradients [clients, P] at ``params`` [clients, P], for one batch per client."""
        flat = torch.empty(params.shape, device=params.device)
        self._back(spec.views(params), Write(spec.views(flat), 0.0, 1.0), batch)
        return flat

    def _back(self, params: Params, write: Write, batch: Batch, terms: Terms = NO_TERMS) -> None:
        """Run one forward and backward pass; gradients are written as ``write`` specifies."""
        x, y, weight, keys = batch
        factors = {Scale.name_of(name): value for name, value in terms.factors.items()}
        params = {**params, **factors}
        anchor_logits = [
            {n: self._evaluated({**tensors, **factors}, x, keys) for n, tensors in anchors.items()}
            for anchors in terms.anchors
        ]
        saved: list[Any] = []
        for layer in self.layers:
            x, kept = layer.forward(x, params, keys)
            saved.append(kept)
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
        for i in range(len(self.layers) - 1, self._first - 1, -1):
            grad = self.layers[i].backward(grad, saved[i], params, write, i > self._first)


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


def why_not_stacked(objective: Objective, data: TrainingData) -> str | None:
    """Why ``StackedExecutor`` cannot train ``objective``; None if its gradients are correct.

    Its gradients are compared with autograd's for one client and for two.
    """
    try:
        layers = chain(objective)
    except NotAChainError as error:
        return str(error)
    fast = StackedExecutor(objective, data, 2, layers=layers)
    for clients in (1, 2):
        try:
            found, expected = _both_gradients(fast, clients)
        except (RuntimeError, ValueError, IndexError) as error:  # from a misplaced layer
            return f"its layers cannot be stacked ({first_sentence(error)})"
        for name, value in expected.items():
            if not torch.allclose(found[name], value, rtol=1e-3, atol=1e-5, equal_nan=True):
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
    found = objective.spec.views(fast.gradients(objective.spec, params, repeated))
    alone = objective.gradients(objective.spec.views(flat), batch)
    return found, {name: value.expand(clients, *value.shape) for name, value in alone.items()}
