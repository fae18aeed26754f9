"""Executors of any model: many clients at once by vmap, or one at a time with errors by step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from channels.concurrency import process_state
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.base.torch_state import kept_torch_generators, seed_torch
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training.batches import Batch, Batches
from wirelessfl.training.cohort import Cohort, Penalty, Terms, anchors_of
from wirelessfl.training.descent import record_descent
from wirelessfl.training.executor import Executor, Job, TrainingData, after_training
from wirelessfl.training.objective import Objective
from wirelessfl.training.recording import Function as Program
from wirelessfl.training.recording import NotRecordableError, TensorExecutor, record
from wirelessfl.training.rules import ClientRule, checked_step, plain_sgd


def _unrecordable(*tensors: Tensor) -> None:
    """Marker stored instead of the program of a step that cannot be recorded."""


class VmapExecutor(TensorExecutor):
    """Trains the clients of a chunk by vmap; a single client trains without vmap.

    Args:
        chunk: number of clients trained at once.
        recorded: see ``TensorExecutor``.
        flat: whether to record each step as a flat list of tensor operations, which on a CPU saves
            the time spent in modules, autograd and vmap. The module's Python code then runs only
            once per shape, so do not use this for modules with Python state.
    """

    name = "vmap"

    def __init__(
        self,
        objective: Objective,
        data: TrainingData,
        chunk: int,
        *,
        recorded: bool | None = None,
        flat: bool = False,
    ) -> None:
        super().__init__(objective, data, chunk, recorded=recorded)
        self.flat = flat

    def warm_up(self) -> None:
        """Call vmap(grad) once: it imports torch's compiler, which takes a second."""
        if self.chunk > 1:
            vmap(grad(torch.sin))(torch.zeros(2))

    def _steps(
        self, rule: ClientRule, spec: ParamSpec, cohort: Cohort, batches: Batches
    ) -> dict[str, Tensor]:
        if self.flat:
            results = self._flat_steps(rule, spec, cohort, batches)
            if results is not None:
                return results
        if len(batches.index) == 1:
            return self._alone(rule, spec, cohort, batches)
        params = cohort.start.clone()
        tensors = spec.views(params)
        state = rule.begin(cohort)
        # One buffer for all steps: gradients are computed per tensor and used as flat vectors.
        flat = None if plain_sgd(rule) else torch.empty_like(params)
        terms = Terms.of(cohort, spec)
        for step in range(cohort.local_steps):
            batch = self.data.of_step(batches, step)
            grads = self.objective.gradients(tensors, batch, terms)
            if flat is None:  # plain SGD needs no copy
                if rule.shrink != 1.0:
                    params.mul_(rule.shrink)
                for name, value in tensors.items():
                    value.sub_(grads[name], alpha=rule.lr)
                continue
            for name, slot in spec.views(flat).items():
                slot.copy_(grads[name])
            params, state = checked_step(rule, params, flat, state, cohort)
            tensors = spec.views(params)
        return after_training(rule, params, state, cohort)

    def _alone(
        self, rule: ClientRule, spec: ParamSpec, cohort: Cohort, batches: Batches
    ) -> dict[str, Tensor]:
        """Train one client by plain autograd on the module itself."""
        params = cohort.start.clone()
        state = rule.begin(cohort)
        terms = Terms.of_first(cohort, spec)
        with self.objective.holding() as parameters:
            leaves, tensors = list(parameters.values()), list(spec.views(params[0]).values())
            names, plain = list(parameters), plain_sgd(rule)
            for step in range(cohort.local_steps):
                for leaf, value in zip(leaves, tensors, strict=True):
                    leaf.data = value
                for name, factor in terms.factors.items():
                    parameters[name].data = parameters[name].data * factor
                batch = self.data.of_step(batches, step, alone=True)
                loss = self.objective.held_loss(batch, terms)
                grads = self._gradients(loss, leaves)
                for name, factor in terms.factors.items():
                    grads[names.index(name)] = grads[names.index(name)] * factor
                if plain:
                    if rule.shrink != 1.0:
                        params.mul_(rule.shrink)
                    torch._foreach_add_(tensors, grads, alpha=-rule.lr)
                    continue
                flat = torch.cat([value.reshape(-1) for value in grads])[None]
                params, state = checked_step(rule, params, flat, state, cohort)
                tensors = list(spec.views(params[0]).values())
        return after_training(rule, params, state, cohort)

    def _gradients(self, loss: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
        try:
            grads = list(torch.autograd.grad(loss, leaves, materialize_grads=True))
        except RuntimeError as error:
            if "returned an invalid gradient" not in str(error):
                raise
            grads = []
        if [value.shape for value in grads] != [leaf.shape for leaf in leaves]:
            raise ConfigError(
                f"model {type(self.objective.module).__name__} keeps activations after its forward "
                'pass, so executor "vmap" cannot train submodels of different widths. Detach what '
                'its attributes and hooks store, or choose executor "loop".'
            )
        return grads

    def _flat_steps(
        self, rule: ClientRule, spec: ParamSpec, cohort: Cohort, batches: Batches
    ) -> dict[str, Tensor] | None:
        """Run each step as a recorded program; None if it cannot be recorded."""
        params = cohort.start.clone()
        state = rule.begin(cohort)
        tensors = self._tensors(spec, params)
        flat = None if _fused(rule) else torch.empty_like(params)
        terms, form = tree_flatten((anchors_of(cohort, spec), dict(cohort.factors)))
        if len(params) == 1:
            terms = [value[0] for value in terms]
        terms = [value.contiguous() for value in terms]  # expanded tensors share memory
        program: Program | None = None
        for step in range(cohort.local_steps):
            batch = self.data.of_step(batches, step, alone=len(params) == 1)
            if program is None:
                example = [*tensors, *batch, *terms]
                program = self._step_program(rule, spec, example, cohort.penalties, form)
            if program is _unrecordable:
                return None
            grads = program(*tensors, *batch, *terms)
            if flat is None:
                continue
            for slot, value in zip(spec.views(flat).values(), grads, strict=True):
                slot.copy_(value)
            params, state = checked_step(rule, params, flat, state, cohort)
            tensors = self._tensors(spec, params)
        return after_training(rule, params, state, cohort)

    def _tensors(self, spec: ParamSpec, params: Tensor) -> list[Tensor]:
        """Parameters [clients, *shape], or [*shape] for a single client."""
        return list(spec.views(params[0] if len(params) == 1 else params).values())

    def _step_program(
        self,
        rule: ClientRule,
        spec: ParamSpec,
        inputs: Sequence[Tensor],
        penalties: tuple[Penalty, ...],
        form: TreeSpec,
    ) -> Program:
        """The recorded program of a step: plain SGD in place, or the gradients only."""
        names, lr = list(spec.shapes), rule.lr if _fused(rule) else None

        def gradients(*tensors: Tensor) -> list[Tensor]:
            params = dict(zip(names, tensors, strict=False))
            x, y, weight, keys, *rest = tensors[len(names) :]
            terms = Terms(penalties, *tree_unflatten(rest, form))
            grads = self.objective.gradients(params, Batch(x, y, weight, keys), terms)
            return list(grads.values())

        def make() -> Program:
            try:
                if lr is None:
                    return record(gradients, inputs)
                return record_descent(gradients, inputs, len(names), lr)
            except NotRecordableError:
                return _unrecordable

        key = lr, penalties, str(form), tuple((t.shape, t.stride()) for t in inputs)
        program: Program = self._kept(key, make)
        return program


def _fused(rule: ClientRule) -> bool:
    """Whether the recorded program of a step includes the update."""
    return plain_sgd(rule) and rule.shrink == 1.0


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
