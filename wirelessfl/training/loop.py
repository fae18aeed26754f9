"""The loop executor: trains one client at a time; it is slow, but its errors name the step."""

from __future__ import annotations

import torch
from torch import Tensor

from channels.concurrency import process_state
from channels.streams import Stream
from wirelessfl.errors import TrainingError
from wirelessfl.generators import kept_torch_generators, seed_torch
from wirelessfl.submodels import ParamSpec
from wirelessfl.training.batches import Batch
from wirelessfl.training.cohort import Terms
from wirelessfl.training.executor import Executor, Job, TrainingData, after_training
from wirelessfl.training.objective import Objective
from wirelessfl.training.rules import checked_step


class LoopExecutor(Executor):
    """Trains clients one by one, for debugging and for modules that use torch's global generator.

    The global generator is seeded per client and step, and restored afterwards. Several threads
    take turns, step by step.
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
        batches = job.batches(self.data.source).to(self.data.inputs.device)
        terms = Terms.of_first(cohort, job.spec)
        for step in range(job.local_steps):
            padded = self.data.of_step(batches, step, alone=True)
            size = int(padded.weight.count_nonzero())  # padding is at the end
            x, y, weight = (part[:size] for part in (padded.x, padded.y, padded.weight))
            batch = Batch(x, y, weight, padded.keys)
            try:
                grads = self._gradient(job.spec, params[0], batch, terms)
            except (RuntimeError, ValueError, ArithmeticError) as error:
                raise TrainingError(
                    f"client {client}, {job.label}, local step {step}: {error} "
                    f"(batch of training samples {batches.index[0, step, :size].tolist()})"
                ) from error
            params, state = checked_step(job.rule, params, grads[None], state, cohort)
        return after_training(job.rule, params, state, cohort)

    def _gradient(self, spec: ParamSpec, params: Tensor, batch: Batch, terms: Terms) -> Tensor:
        with process_state, kept_torch_generators():
            key = Stream(self.seed, tuple(batch.keys.tolist())).key()
            seed_torch(key >> 1, cuda=params.is_cuda)
            loss, gradient = self.objective.flat_gradient(spec, params, batch, terms)
        if not torch.isfinite(loss):
            raise ArithmeticError(f"the loss is {loss.item()}; lower --lr, or check the inputs")
        return gradient
