"""One client after the other, one step at a time: slow, plain, and with errors that say where."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from channels.streams import Stream
from wirelessfl.errors import TrainingError
from wirelessfl.training.cohort import Anchors, anchors_of
from wirelessfl.training.executor import Executor, Job, TrainingData, after_training
from wirelessfl.training.objective import Objective


class LoopExecutor(Executor):
    """Clients train one by one, for debugging and for modules that draw random numbers themselves.

    torch's global generator is seeded per client and step, and restored afterwards.
    """

    name = "loop"

    def __init__(
        self, objective: Objective, data: TrainingData, chunk: int = 1, *, seed: int = 0
    ) -> None:
        super().__init__(objective, data, chunk)
        self.seed = seed

    def _train(self, job: Job) -> dict[str, Tensor]:
        alone = [self._train_one(job.of(slice(i, i + 1))) for i in range(len(job.clients))]
        return {name: torch.cat([results[name] for results in alone]) for name in alone[0]}

    def _train_one(self, job: Job) -> dict[str, Tensor]:
        cohort = job.cohort()
        client = int(job.clients[0])
        params = cohort.start.clone()
        state = job.rule.begin(cohort)
        self.objective.module.train()
        batches = job.batches(self.data.source)
        anchors = tree_map(lambda value: value[0], anchors_of(cohort, job.spec))
        for step in range(job.local_steps):
            weight = batches.weight[0, step]
            rows = batches.index[0, step][weight > 0]  # no padding here
            try:
                key = batches.keys[0, step]
                grads = self._gradient(job, params[0], rows, weight[weight > 0], key, anchors)
            except (RuntimeError, ValueError, ArithmeticError) as error:
                raise TrainingError(
                    f"client {client}, {job.label}, local step {step}: {error} "
                    f"(batch of training samples {rows.tolist()})"
                ) from error
            params, state = job.rule.step(params, grads[None], state, cohort)
        return after_training(job.rule, params, state, cohort)

    def _gradient(
        self,
        job: Job,
        params: Tensor,
        rows: Tensor,
        weight: Tensor,
        key: Tensor,
        anchors: Anchors,
    ) -> Tensor:
        device = self.data.inputs.device
        leaf = params.detach().clone().requires_grad_()
        with torch.random.fork_rng():
            torch.manual_seed(Stream(self.seed, tuple(key.tolist())).key() >> 1)
            x, y = self.data.batch(rows.to(device))
            batch = x, y, weight.to(device), key.to(device)
            loss = self.objective.loss(job.spec.views(leaf), *batch, anchors, job.penalties)
        if not torch.isfinite(loss):
            raise ArithmeticError(f"the loss is {loss.item()}; lower --lr, or look at the inputs")
        return torch.autograd.grad(loss, leaf)[0]
