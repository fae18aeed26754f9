"""The general engine: any module, many clients at once, by vmap over stacked flat parameters."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vmap

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.submodels import ParamSpec
from wirelessfl.training.batches import Batches
from wirelessfl.training.program import TensorExecutor
from wirelessfl.training.rules import Cohort


class VmapExecutor(TensorExecutor):
    """``vmap(grad(functional_call))`` over the clients of a chunk; one client needs no vmap."""

    name = "vmap"

    def _steps(
        self, algorithm: Algorithm, spec: ParamSpec, cohort: Cohort, batches: Batches
    ) -> dict[str, Tensor]:
        params = cohort.start.clone()
        tensors = spec.views(params)
        state = algorithm.begin(cohort)
        # One buffer for all steps: gradients come by tensor and are used as flat vectors.
        flat = None if algorithm.plain_sgd else torch.empty_like(params)
        for step in range(cohort.local_steps):
            rows = batches.index[:, step]
            gradients = self._gradients(
                tensors,
                self.data.inputs[rows],
                self.data.labels[rows],
                batches.weight[:, step],
                batches.keys[:, step],
            )
            if flat is None:  # plain SGD spares the copy
                torch._foreach_add_(
                    list(tensors.values()),
                    [gradients[name] for name in tensors],
                    alpha=-algorithm.lr,
                )
                continue
            for name, slot in spec.views(flat).items():
                slot.copy_(gradients[name])
            params, state = algorithm.step(params, flat, state, cohort)
            tensors = spec.views(params)
        return algorithm.send(params, state, cohort)

    def _gradients(
        self, tensors: dict[str, Tensor], x: Tensor, y: Tensor, weight: Tensor, keys: Tensor
    ) -> dict[str, Tensor]:
        """Gradients [clients, *shape] by name."""
        if len(x) > 1:
            together: Any = vmap(grad(self.task.loss))
            gradients: dict[str, Tensor] = together(tensors, x, y, weight, keys)
            return gradients
        leaves = {name: value[0].requires_grad_() for name, value in tensors.items()}
        with torch.enable_grad():
            loss = self.task.loss(leaves, x[0], y[0], weight[0], keys[0])
        found = torch.autograd.grad(loss, list(leaves.values()))
        return {name: value[None] for name, value in zip(leaves, found, strict=True)}
