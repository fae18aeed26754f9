"""Floating-point operations of a mini-batch step, counted by running the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from wirelessfl.base.torch_state import kept_generators
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
    counter = _Counter()
    with kept_generators(), counter, _Products():
        objective.gradients(params, batch)
    return counter.flops


class _Counter(TorchDispatchMode):
    """Counts operations by torch's formulas.

    ``FlopCounterMode`` also adds hooks to the modules of all threads.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        with self:
            parts = func.decompose(*args, **kwargs)
        if parts is not NotImplemented:
            return parts
        out = func(*args, **kwargs)
        formula = flop_registry.get(func._overloadpacket)
        self.flops += 0 if formula is None else int(formula(*args, **kwargs, out_val=out))
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
