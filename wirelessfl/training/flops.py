"""Floating-point operations of a mini-batch step, counted by running the model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from wirelessfl.data.dataset import widened
from wirelessfl.training.batches import Batch
from wirelessfl.training.objective import Objective


def step_flops(objective: Objective, inputs: Tensor, labels: Tensor, batch_size: int) -> int:
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
    """
    rows = torch.arange(batch_size, device=labels.device) % len(labels)
    weight = torch.full((batch_size,), 1.0 / batch_size, device=labels.device)
    key = torch.zeros(2, dtype=torch.int32, device=labels.device)
    batch = Batch(widened(inputs[rows]), labels[rows], weight, key)
    params = objective.spec.views(objective.spec.from_module(objective.module))
    objective.module.train()
    with torch.random.fork_rng(), _plain_kernels(), FlopCounterMode(display=False) as counter:
        objective.gradients(params, batch)
    return int(counter.get_total_flops())


@contextmanager
def _plain_kernels() -> Iterator[None]:
    """Disable fused kernels of recurrent layers and attention, which torch does not count.

    The flags are set one by one because ``mkldnn.flags`` warns if there is no Intel GPU.
    """
    before = torch.backends.mkldnn.enabled, torch.backends.cudnn.enabled
    torch.backends.mkldnn.enabled = torch.backends.cudnn.enabled = False  # type: ignore[assignment]
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mkldnn.enabled, torch.backends.cudnn.enabled = before
