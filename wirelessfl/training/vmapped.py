"""The general engine: any module, many clients at once, by vmap over stacked flat parameters."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vmap

from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.task import Task


class VmapExecutor(Executor):
    """``vmap(grad(functional_call))`` over the clients of a chunk."""

    name = "vmap"

    def __init__(self, task: Task, inputs: Tensor, labels: Tensor, chunk: int) -> None:
        super().__init__(task, inputs, labels, chunk)
        self._gradients: Any = vmap(grad(task.loss))

    def _train(self, job: Job, part: slice) -> dict[str, Tensor]:
        cohort = job.cohort(part)
        batches = job.batches(part).to(self.inputs.device)
        params = cohort.start.clone()
        state = job.algorithm.begin(cohort)
        # One buffer for all steps: gradients come by tensor and are used as flat vectors.
        flat = torch.empty_like(params)
        slots = job.spec.views(flat)
        self.task.module.train()
        for step in range(job.local_steps):
            rows = batches.index[:, step]
            tensors = self._gradients(
                job.spec.views(params),
                self.inputs[rows],
                self.labels[rows],
                batches.weight[:, step],
                batches.keys[:, step],
            )
            for name, slot in slots.items():
                slot.copy_(tensors[name])
            params, state = job.algorithm.step(params, flat, state, cohort)
        return job.algorithm.send(params, state, cohort)
