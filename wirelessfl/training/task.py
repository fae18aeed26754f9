"""What is trained: a model as a pure function of its flat parameters, and its loss."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from wirelessfl.errors import ConfigError
from wirelessfl.models.dropout import StreamDropout
from wirelessfl.submodels import ParamSpec, Partition, Submodels, extract


@dataclass(frozen=True)
class Task:
    """A model with a cross-entropy loss over classes.

    The module's own parameters serve as the frozen rest only (a LoRA base, buffers): the trainable
    ones always come from flat vectors.
    """

    module: nn.Module
    spec: ParamSpec
    dropout_keys: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, module: nn.Module) -> Task:
        """The task of training ``module``.

        Raises:
            ConfigError: it holds a layer whose running statistics would leak between clients.
        """
        for name, layer in module.named_modules():
            if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.track_running_stats:
                raise ConfigError(
                    f"layer {name!r} is a {type(layer).__name__} with running statistics, which "
                    "clients that train together would share. Use nn.GroupNorm, or "
                    "track_running_stats=False."
                )
        keys = tuple(
            f"{name}.key" if name else "key"
            for name, layer in module.named_modules()
            if isinstance(layer, StreamDropout) and layer.p > 0
        )
        return cls(module, ParamSpec.of(module), keys)

    def loss(
        self, params: dict[str, Tensor], x: Tensor, y: Tensor, weight: Tensor, key: Tensor
    ) -> Tensor:
        """Weighted training loss of one batch: ``x`` [batch, ...], ``y`` and ``weight`` [batch]."""
        tensors = params | dict.fromkeys(self.dropout_keys, key)
        logits = functional_call(self.module, tensors, (x,))
        return (F.cross_entropy(logits, y, reduction="none") * weight).sum()

    def draws_by_itself(self, x: Tensor) -> bool:
        """Whether a training pass over ``x`` depends on torch's global generator (nn.Dropout)."""
        self.module.train()
        outputs = []
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            for seed in (0, 1):
                torch.manual_seed(seed)
                outputs.append(self.module(x))
        return not torch.equal(outputs[0], outputs[1])


def check_partition(task: Task, partition: Partition, x: Tensor) -> None:
    """Refuse a model whose submodels do not work: wrong layers, or an activation with act(0) != 0.

    Compares a submodel with the same one padded by idle neurons, on the inputs ``x`` [batch, ...].

    Raises:
        ConfigError: they differ, or the submodel cannot be evaluated.
    """
    half = [np.arange(max(layer.width // 2, 1)) for layer in partition.layers]
    whole = [np.arange(layer.width) for layer in partition.layers]
    flat = task.spec.from_module(task.module)
    name = type(task.module).__name__
    try:
        tight, _ = _submodel_gradient(task, extract(partition, [half]), flat, x)
        padded, idle = _submodel_gradient(task, extract(partition, [half, whole]), flat, x)
    except RuntimeError as error:
        raise ConfigError(
            f"model {name} cannot run with fewer neurons in "
            f"{', '.join(layer.producer for layer in partition.layers)}: {error}"
        ) from error
    if bool((idle != 0).any()):
        raise ConfigError(
            f"model {name}: an idle neuron of a split layer gets a gradient, so submodels of "
            "different widths cannot train together. Its activation needs act(0) = 0 (ReLU, tanh, "
            "GELU)."
        )
    if not torch.allclose(tight, padded, rtol=1e-3, atol=1e-6):
        raise ConfigError(
            f"model {name}: a submodel changes when idle neurons are added to it. What stands "
            "between the split layers must act on each neuron alone (no normalisation over them)."
        )


def _submodel_gradient(
    task: Task, submodels: Submodels, flat: Tensor, x: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradient of the first submodel: in full coordinates [P], and that of its padding."""
    assert submodels.index is not None
    index = submodels.index[0].to(x.device)
    leaf = submodels.gather(flat)[0].requires_grad_()
    labels = torch.zeros(len(x), dtype=torch.long, device=x.device)
    weight = torch.full((len(x),), 1.0 / len(x), device=x.device)
    key = torch.zeros(2, dtype=torch.int32, device=x.device)
    loss = task.loss(submodels.spec.views(leaf), x, labels, weight, key)
    gradient = torch.autograd.grad(loss, leaf)[0]
    full = torch.zeros_like(flat)
    full[index[index >= 0]] = gradient[index >= 0]
    return full, gradient[index < 0]
