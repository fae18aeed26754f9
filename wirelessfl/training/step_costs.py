"""Costs of a local step, counted or estimated, and the number of clients trained at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.conv import _ConvNd
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from wirelessfl.base.torch_state import kept_generators
from wirelessfl.data.dataset import widened
from wirelessfl.training.batches import Batch
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.module_executors import LoopExecutor, VmapExecutor
from wirelessfl.training.objective import Objective

CANDIDATES = (1, 6, 10, 20, 60, 200)
LARGEST_BYTES = 1 << 23
"""Maximum bytes of a chunk's parameters, to fit the caches; a process needs about ten copies."""
LARGEST_CHUNK = 20
"""Larger chunks are not faster per client on any measured model (docs/reference/performance.md)."""
PARTS = 4
"""Minimum number of chunks per cohort if steps are long, so that several processes share it."""
LONG_STEP_SECONDS = 1e-3
SAMPLE_BYTES = 1 << 30
"""Maximum bytes of a chunk's samples, if the module declares ``bytes_per_sample``."""
STEP_OVERHEAD_SECONDS = 1e-4
TENSOR_COPIES = 8
"""Memory of a step relative to the tensors stored for its backward pass, measured on a GPU."""
FLOP_PER_SECOND = 6e10
"""Approximate speed of one thread on a server's core."""
WORTH = 0.9  # a larger chunk must take less than this fraction of the best time per client
PATIENCE = 10  # the search stops only at sizes above this


def estimated_step_seconds(objective: Objective, x: Tensor, batch_size: int) -> float:
    """Estimate the seconds of a client's local step on one thread from the model, without timing.

    The forward pass counts two operations per multiplication by a weight; a step counts three times
    as many.

    Args:
        x: [batch, ...], any samples.
        batch_size: samples per step.
    """
    multiplications = 0

    def count(module: nn.Module, inputs: tuple[Any, ...], out: Any) -> None:
        nonlocal multiplications
        weights = [p for p in module.parameters(recurse=False) if p.ndim > 1]
        if not weights or isinstance(module, nn.Embedding):
            return
        channels = 1 if isinstance(module, _ConvNd) else -1
        tensors = [out] if isinstance(module, _ConvNd) else [*inputs, out]
        # A recurrent layer may return only its last position, so inputs are considered as well.
        positions = max(
            (t.numel() // max(t.shape[channels], 1) for t in tensors if isinstance(t, Tensor)),
            default=0,
        )
        multiplications += positions * sum(parameter.numel() for parameter in weights)

    hooks = [module.register_forward_hook(count) for module in objective.module.modules()]
    try:
        with torch.no_grad(), torch.random.fork_rng():
            objective.module(x)
    finally:
        for hook in hooks:
            hook.remove()
    flop = 6 * multiplications * batch_size / len(x)
    return STEP_OVERHEAD_SECONDS + flop / FLOP_PER_SECOND


def estimated_sample_bytes(objective: Objective, x: Tensor) -> float:
    """Estimate the memory of a sample in a training step: what the module declares, or by a rule.

    The rule: eight times the tensors that autograd stores, and the windows of convolutions.

    Args:
        x: [batch, ...], any samples, on the device.
    """
    if declared := objective.bytes_per_sample:
        return declared
    module = objective.module
    parameters = {p.untyped_storage().data_ptr() for p in module.parameters()}
    stored: dict[int, int] = {}
    windows = 0

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        stored[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()  # held until the backward pass, so that no address is used twice

    def count(module: nn.Module, inputs: tuple[Any, ...], out: Any) -> None:
        nonlocal windows
        if isinstance(module, _ConvNd) and isinstance(out, Tensor):
            positions = out.numel() // out.shape[1]
            windows += positions * module.weight[0].numel() * out.element_size()

    hooks = [layer.register_forward_hook(count) for layer in module.modules()]
    training = module.training
    try:
        with (
            torch.random.fork_rng(),
            torch.enable_grad(),
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        ):
            out = module.eval()(x)  # kept here until all tensors are counted
    finally:
        module.train(training)
        for hook in hooks:
            hook.remove()
    del out
    size = sum(size for address, size in stored.items() if address not in parameters)
    return TENSOR_COPIES * (size + windows) / len(x)


def default_chunk(
    kind: type[Executor], objective: Objective, clients: int, batch_size: int, seconds: float
) -> int:
    """Default chunk size on a CPU, by a rule derived from measurements on this package's models.

    It depends only on the workload, not on cores, workers or machine load, because the last bits of
    the results depend on the chunk size.

    Args:
        kind: class of the executor.
        clients: clients that train in a round.
        batch_size: samples per step.
        seconds: duration of a client's step, see ``estimated_step_seconds``.
    """
    if kind is LoopExecutor:
        return 1
    if kind is VmapExecutor and has_convolutions(objective):
        return 1  # separate convolutions are faster than a grouped one
    # bfloat16 products need a copy of the parameters and of their gradients beside them.
    room = LARGEST_BYTES // ((8 if objective.precision == "bf16" else 4) * objective.spec.size)
    if sample := objective.bytes_per_sample:
        room = min(room, SAMPLE_BYTES // (sample * batch_size))
    if seconds > LONG_STEP_SECONDS:
        room = min(room, -(-clients // PARTS))
    return max(min(LARGEST_CHUNK, room, clients), 1)


def has_convolutions(objective: Objective) -> bool:
    """Whether the model has convolutions."""
    return any(isinstance(module, _ConvNd) for module in objective.module.modules())


def candidates(clients: int, parameters: int) -> list[int]:
    """Chunk sizes to try, in ascending order.

    Args:
        clients: clients that train in a round.
        parameters: P of the full model.
    """
    room = max(LARGEST_BYTES // (4 * parameters), 1)
    sizes = sorted({min(size, clients) for size in CANDIDATES})
    return [size for size in sizes if size <= room] or [room]


def fastest_chunk(
    make: Callable[[int], Executor], job: Callable[[int], Job], sizes: Sequence[int]
) -> int:
    """Time a few steps at each chunk size, and return the size that is fastest per client.

    Args:
        make: returns an executor with a given chunk size.
        job: returns a job of a few steps for a given number of clients.
        sizes: sizes to try, ascending; the search stops at a size that is clearly slower.
    """
    best, min_seconds = sizes[0], float("inf")
    for size in sizes:
        executor, work = make(size), job(size)
        seconds = min(_seconds(executor, work) for _ in range(2)) / size
        if size > PATIENCE and seconds > 1.2 * min_seconds:
            break
        if seconds < WORTH * min_seconds:
            best, min_seconds = size, seconds
    return best


def _seconds(executor: Executor, job: Job) -> float:
    start = time.perf_counter()
    for _ in executor.train(job):
        pass
    return time.perf_counter() - start


LINEAR = (torch.ops.aten.mm, torch.ops.aten.addmm)
CONVOLUTIONS = (torch.ops.aten.convolution, torch.ops.aten.convolution_backward)


def step_flops(
    objective: Objective, inputs: Tensor, labels: Tensor, batch_size: int
) -> tuple[int, int, int]:
    """FLOPs of one mini-batch step of the full model: forward, backward and update.

    The step runs on a batch of real samples under torch's counter (``torch.utils.flop_counter``).
    Matrix products, convolutions and attention count two FLOPs per multiply-accumulate each time a
    layer runs, so a tied weight counts once per use. The backward pass includes the gradients that
    training needs, but not those of inputs or frozen parameters. Everything else counts as zero:
    element-wise operations (including the update), normalisation, pooling, embeddings,
    matrix-vector products, and terms that an algorithm or warm start adds to the loss. Recurrent
    layers and attention are always counted as matrix products, so the number does not depend on the
    device or the executor.

    Args:
        objective: the model and its loss.
        inputs: [samples, ...], training samples on the model's device.
        labels: [samples], their labels.
        batch_size: samples per step; if there are fewer samples, some are repeated.

    Returns:
        FLOPs in fully connected layers, in convolutions, and in the rest, such as attention.
    """
    rows = torch.arange(batch_size, device=labels.device) % len(labels)
    weight = torch.full((batch_size,), 1.0 / batch_size, device=labels.device)
    key = torch.zeros(2, dtype=torch.int32, device=labels.device)
    batch = Batch(widened(inputs[rows]), labels[rows], weight, key)
    params = objective.spec.views(objective.spec.from_module(objective.module))
    objective.module.train()
    counter = _Counter()
    with kept_generators(), counter, _Products():
        objective.gradients(params, batch)
    linear, conv, other = counter.flops
    return linear, conv, other


class _Counter(TorchDispatchMode):
    """Counts operations by torch's formulas.

    ``FlopCounterMode`` also adds hooks to the modules of all threads.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = [0, 0, 0]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        with self:
            parts = func.decompose(*args, **kwargs)
        if parts is not NotImplemented:
            return parts
        out = func(*args, **kwargs)
        packet = func._overloadpacket
        formula = flop_registry.get(packet)
        kind = 0 if packet in LINEAR else 1 if packet in CONVOLUTIONS else 2
        self.flops[kind] += 0 if formula is None else int(formula(*args, **kwargs, out_val=out))
        return out


class _Products(TorchFunctionMode):
    """Computes recurrent layers and attention by matrix products, whose FLOPs torch counts.

    Torch's settings for this, such as ``torch.backends.mkldnn.enabled``, are those of all threads.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call ``func``, or the products instead of it."""
        kwargs = kwargs or {}
        if func in RECURRENT:
            return _recurrent(RECURRENT[func], *args)
        if func is F.scaled_dot_product_attention:
            return torch.ops.aten._scaled_dot_product_attention_math(*args, **kwargs)[0]
        if func is F.multi_head_attention_forward and not kwargs.get("need_weights", True):
            return func(*args, **kwargs | {"need_weights": True})[0], None
        return func(*args, **kwargs)


RECURRENT = {getattr(torch, name): name for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")}
"""Functions of recurrent layers, with their names."""


def _recurrent(name: str, x: Tensor, second: Any, third: Any, *further: Any) -> Any:
    """A recurrent layer of packed sequences, which have no fused kernel; others are packed."""
    layer = getattr(torch.ops.aten, name).data.decompose
    if isinstance(second, Tensor) and second.dim() == 1:  # batch sizes of packed sequences
        return layer(x, second, third, *further)
    *settings, batch_first = further
    steps = x.transpose(0, 1) if batch_first else x
    sizes = torch.full((len(steps),), steps.shape[1])
    out, *states = layer(steps.flatten(0, 1), sizes, second, third, *settings)
    out = out.unflatten(0, steps.shape[:2])
    return out.transpose(0, 1) if batch_first else out, *states
