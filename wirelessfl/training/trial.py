"""Checks of a model before training: alone, with several clients, and as submodels."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from wirelessfl.errors import ConfigError
from wirelessfl.submodels import NeuronMap, Partition, Submodels, extract, extract_neurons
from wirelessfl.training.batches import Batch
from wirelessfl.training.objective import Objective


def check_model(objective: Objective, x: Tensor, y: Tensor, classes: int) -> str | None:
    """Try a model on a few samples, and raise if it cannot be trained.

    Args:
        objective: the objective to check.
        x: [batch, ...], a few samples.
        y: [batch], their labels.
        classes: number of classes of the data set.

    Returns:
        None, or why several clients cannot train at once: the model draws random numbers from
        torch's global generator.

    Raises:
        ConfigError: the model does not run on the samples, does not return logits [batch, classes],
            changes its buffers, or uses a parameter other than by its name.
    """
    module, name = objective.module, type(objective.module).__name__
    buffers = {key: value.clone() for key, value in module.named_buffers()}
    module.train()
    before = torch.random.get_rng_state()
    with torch.random.fork_rng():
        try:
            with torch.no_grad():
                logits = module(x)
        except Exception as error:
            raise ConfigError(
                f"model {name} does not run on samples of shape {tuple(x.shape[1:])}: {error}"
            ) from error
        draws = not torch.equal(before, torch.random.get_rng_state())
    shape = tuple(getattr(logits, "shape", ()))
    if shape != (len(x), classes):
        raise ConfigError(
            f"model {name} returns {shape or type(logits).__name__} for {len(x)} samples: return "
            f"logits [batch, {classes}], one per class of the data set."
        )
    for key, value in module.named_buffers():
        if not torch.equal(value, buffers[key]):
            raise ConfigError(
                f"model {name} changes its buffer {key!r} in training, but clients share buffers: "
                "store such state in parameters, or remove it."
            )
    _check_names(objective, x, y)
    if draws:
        return (
            f"model {name} draws from torch's global generator; wirelessfl.models.StreamDropout "
            "does not"
        )
    return None


def why_not_vmapped(objective: Objective, x: Tensor, y: Tensor) -> str | None:
    """Why vmap cannot train ``objective`` on samples x [batch, ...], y [batch]; None if it can.

    The first call in a process takes a second, because torch imports its compiler.
    """
    module, name = objective.module, type(objective.module).__name__
    try:
        two = objective.spec.from_module(module).expand(2, -1)
        half = x.new_zeros((2, len(x)), dtype=torch.float32)
        half[:, :2] = 0.5  # all samples after the second are padding
        zero = torch.zeros(2, dtype=torch.int32, device=x.device)
        xs, ys = (t.expand(2, *t.shape) for t in (x, y))
        padded = objective.gradients(
            objective.spec.views(two), Batch(xs, ys, half, zero.expand(2, 2))
        )
    except RuntimeError as error:
        return f"model {name} does not run under vmap ({str(error).splitlines()[0]})"
    alone = Batch(x[:2], y[:2], half[0, :2], zero)
    tight = objective.gradients(objective.spec.views(two[0]), alone)
    for key, value in tight.items():
        if not all(_close(client, value) for client in padded[key]):
            return f"model {name} mixes the samples of a batch, so batches cannot be padded"
    return None


def _check_names(objective: Objective, x: Tensor, y: Tensor) -> None:
    """Raise if a module uses a parameter other than by its name.

    Raises:
        ConfigError: a parameter's gradient is 0 when its value is passed by name, but not when the
            value is set in the module.
    """
    flat = objective.spec.from_module(objective.module)
    weight = x.new_full((len(x),), 1.0 / len(x), dtype=torch.float32)
    key = torch.zeros(2, dtype=torch.int32, device=x.device)
    with torch.random.fork_rng():
        named = objective.gradients(objective.spec.views(flat), Batch(x, y, weight, key))
        held = objective.held_gradients(flat, Batch(x, y, weight, key))
    for name, value in named.items():
        if bool(held[name].any()) and not bool(value.any()):
            raise ConfigError(
                f"model {type(objective.module).__name__} uses its parameter {name!r} other than "
                "by its name (from a list of tensors?), so clients cannot have separate values: "
                "use it as an attribute of its layer, or use nn.ParameterList."
            )


def _close(one: Tensor, two: Tensor) -> bool:
    """Whether two gradients differ only by rounding.

    The comparison uses norms: in a deep model, one ReLU that flips due to rounding changes the
    gradients of whole layers by some thousandths, and single elements by more than their magnitude.
    Mixing samples changes the gradient much more.
    """
    same = (one == two) | (one.isnan() & two.isnan())
    gap = (one - two).masked_fill(same, 0.0)
    return bool(gap.norm() <= 1e-2 * two.nan_to_num().norm() + 1e-6 * two.numel() ** 0.5)


def check_partition(objective: Objective, partition: Partition, x: Tensor) -> None:
    """Raise if submodels of a model do not work, e.g. for an activation with act(0) != 0.

    Compares a submodel with the same submodel padded with idle neurons on ``x`` [batch, ...].

    Raises:
        ConfigError: their gradients differ, or the submodel cannot be evaluated.
    """
    half = [np.arange(max(layer.width // 2, 1)) for layer in partition.layers]
    whole = [np.arange(layer.width) for layer in partition.layers]
    flat = objective.spec.from_module(objective.module)
    name = type(objective.module).__name__
    objective.module.eval()  # dropout would draw different masks for the two
    try:
        tight, _ = _submodel_gradient(objective, extract(partition, [half]), flat, x)
        padded, idle = _submodel_gradient(objective, extract(partition, [half, whole]), flat, x)
    except RuntimeError as error:
        raise ConfigError(
            f"model {name} cannot run with fewer neurons in "
            f"{', '.join(layer.name for layer in partition.layers)}: {error}"
        ) from error
    if bool((idle != 0).any()):
        raise ConfigError(
            f"model {name}: an idle neuron of a partitioned layer gets a gradient, so submodels of "
            "different widths cannot train together: use an activation with act(0) = 0 (ReLU, "
            "tanh, GELU)."
        )
    if not torch.allclose(tight, padded, rtol=1e-3, atol=1e-6):
        raise ConfigError(
            f"model {name}: idle neurons change the gradient of a submodel. Between the "
            "partitioned layers, use only operations on individual neurons (no normalisation over "
            "neurons)."
        )


def check_neurons(objective: Objective, neurons: NeuronMap, x: Tensor) -> str | None:
    """Why submodels of different widths cannot train in one batch; None if they can.

    Compares a submodel with the same submodel padded with idle neurons on ``x`` [batch, ...].

    Raises:
        ConfigError: the model does not run with fewer neurons.
    """
    flat, name = objective.spec.from_module(objective.module), type(objective.module).__name__
    few = [
        np.concatenate([np.arange(max(size // 2, 1)) + block * size for block in range(blocks)])
        for blocks, size in (
            (layer.blocks, layer.width // layer.blocks) for layer in neurons.layers
        )
    ]
    whole = [np.arange(layer.width) for layer in neurons.layers]
    objective.module.eval()  # dropout would draw different masks for the two
    try:
        tight, _ = _submodel_gradient(
            objective, extract_neurons(neurons.spec, neurons.layers, [few]), flat, x
        )
    except RuntimeError as error:
        raise ConfigError(
            f"model {name} cannot run with fewer neurons in "
            f"{', '.join(layer.name for layer in neurons.layers)}: {str(error).splitlines()[0]}"
        ) from error
    padded, idle = _submodel_gradient(
        objective, extract_neurons(neurons.spec, neurons.layers, [few, whole]), flat, x
    )
    if bool((idle != 0).any()) or not torch.allclose(tight, padded, rtol=1e-3, atol=1e-6):
        return (
            f"idle neurons change the gradient of a submodel of {name} (through a norm over "
            "neurons, or an activation with act(0) != 0), so only submodels of equal widths can "
            "train together"
        )
    return None


def _submodel_gradient(
    objective: Objective, submodels: Submodels, flat: Tensor, x: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradient of the first submodel in full coordinates [P], and the gradient of its padding."""
    assert submodels.index is not None
    index = submodels.index[0].to(x.device)
    leaf = submodels.gather(flat)[0].requires_grad_()
    labels = torch.zeros(len(x), dtype=torch.long, device=x.device)
    weight = torch.full((len(x),), 1.0 / len(x), device=x.device)
    key = torch.zeros(2, dtype=torch.int32, device=x.device)
    loss = objective.loss(submodels.spec.views(leaf), Batch(x, labels, weight, key))
    gradient = torch.autograd.grad(loss, leaf)[0]
    full = torch.zeros_like(flat)
    full[index[index >= 0]] = gradient[index >= 0]
    return full, gradient[index < 0]
