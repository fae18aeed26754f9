"""Checks of a model before training: alone, with several clients, and as submodels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import described
from wirelessfl.models.losses import LOSSES, CrossEntropy, Loss, Probe
from wirelessfl.models.losses.built_in import BinaryCrossEntropy
from wirelessfl.models.submodels import NeuronMap, Partition, Submodels, extract, extract_neurons
from wirelessfl.models.submodels.tracing import first_sentence
from wirelessfl.training.batches import Batch
from wirelessfl.training.module_checks import check_registered, output_of, trial_pass
from wirelessfl.training.objective import Objective


def check_model(
    objective: Objective, x: Tensor, y: Tensor, classes: int, label_hint: str = ""
) -> str | None:
    """Try a model on a few samples, and raise if it cannot be trained.

    Args:
        x: [batch, ...], a few samples.
        y: [batch, ...], their labels.
        classes: number of outputs of the data set.
        label_hint: sentences on what may be wrong with the labels, if outputs do not fit them.

    Returns:
        None, or why several clients cannot train at once: the model draws random numbers from
        torch's global generator, or computes activations again in the backward pass.

    Raises:
        ConfigError: the model does not run on the samples, does not return the outputs that the
            loss needs, such as logits [batch, classes], has side effects (see ``trial_pass``),
            trains a tensor that is not a parameter of it, uses a parameter other than by its name,
            or cannot be differentiated.
    """
    name = type(objective.module).__name__
    logits, draws = trial_pass(objective, x)
    shape = tuple(getattr(logits, "shape", ()))
    shapes = objective.criterion.shapes(y, classes)
    if shape[:1] != (len(x),) or (shapes is not None and shape not in shapes):
        need = f"logits [batch, {classes}], one per class of the data set."
        if not (isinstance(objective.criterion, CrossEntropy) and y.dim() == 1):
            layout = " or ".join(
                str(["batch", *shape_of[1:]]).replace("'", "") for shape_of in shapes or ()
            )
            need = (
                f"outputs {layout or '[batch, ...]'}, as loss {objective.criterion.title!r} needs"
            )
            need += f" for labels {described(y)}" if shapes else ""
            others = [name for name, kind in LOSSES.classes().items() if _takes(kind(), y, shape)]
            need += "".join(f', or choose loss "{name}"' for name in others) + "."
        raise ConfigError(
            f"model {name} returns {shape or type(logits).__name__} for {len(x)} samples: return "
            f"{need}{label_hint}"
        )
    recomputes = _check_gradients(objective, x, y)
    if draws:
        return (
            f"model {name} draws from torch's global generator; wirelessfl.models.StreamDropout "
            "does not"
        )
    return recomputes


def _takes(loss: Loss, y: Tensor, shape: tuple[int, ...]) -> bool:
    shapes = loss.shapes(y, shape[1]) if len(shape) > 1 else None
    return loss.fits(y) and shapes is not None and shape in shapes


def probabilities(objective: Objective, x: Tensor) -> list[str]:
    """A line if the model's outputs for samples ``x`` are probabilities, but its loss needs logits.

    Args:
        x: [batch, ...], a few samples.
    """
    if not isinstance(objective.criterion, CrossEntropy | BinaryCrossEntropy):
        return []
    outputs, sigmoids = _with_sigmoids(objective.module, x)
    ones = outputs.new_ones(outputs[:, 0].shape)
    if outputs.min() < 0 or outputs.max() > 1 + 1e-4:
        return []
    if any(torch.equal(values.flatten(), outputs.flatten()) for values in sigmoids):
        layer = "sigmoid"
    elif outputs.shape[1] > 1 and outputs.sum(1).allclose(ones, atol=1e-4):
        layer = "softmax"
    else:
        return []
    return [
        f"model {type(objective.module).__name__} returns probabilities, but loss "
        f'"{objective.criterion.title}" needs logits: remove its last {layer}.'
    ]


def _with_sigmoids(module: nn.Module, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Output of ``module`` for samples ``x`` [batch, ...], and the outputs of its sigmoids."""
    values = list[Tensor]()
    sigmoids = (part for part in module.modules() if isinstance(part, nn.Sigmoid))
    hooks = [part.register_forward_hook(lambda *call: values.append(call[-1])) for part in sigmoids]
    try:
        return output_of(module, x), values
    finally:
        for hook in hooks:
            hook.remove()


def why_not_vmapped(objective: Objective, x: Tensor, y: Tensor) -> str | None:
    """Why vmap cannot train ``objective`` on samples x [batch, ...], y [batch]; None if it can.

    The first call in a process takes a second, because torch imports its compiler.
    """
    module, name = objective.module, type(objective.module).__name__
    try:
        clients = objective.spec.from_module(module).expand(2, -1)
        half = x.new_zeros((2, len(x)), dtype=torch.float32)
        half[:, :2] = 0.5  # all samples after the second are padding
        zero = torch.zeros(2, dtype=torch.int32, device=x.device)
        xs, ys = (torch.stack([t, t]) for t in (x, y))
        padded = objective.gradients(
            objective.spec.views(clients), Batch(xs, ys, half, zero.expand(2, 2))
        )
    except Exception as error:  # a user's forward may raise anything under vmap
        return f"model {name} does not run under vmap ({first_sentence(error)})"
    alone = Batch(x[:2].clone(), y[:2], half[0, :2], zero)
    tight = objective.gradients(objective.spec.views(clients[0]), alone)
    for key, value in tight.items():
        if not all(_close(client, value) for client in padded[key]):
            return f"model {name} mixes the samples of a batch, so batches cannot be padded"
    return None


def check_rounded(objective: Objective, x: Tensor, y: Tensor) -> None:
    """Raise if a model cannot be trained with the rounded products of ``objective``.

    Args:
        objective: one whose precision is "bf16".
        x: [batch, ...], a few samples.
        y: [batch, ...], their labels.
    """
    flat = objective.spec.from_module(objective.module)
    try:
        with torch.random.fork_rng():
            objective.flat_gradient(objective.spec, flat, _batch(x, y))
    except Exception as error:  # a user's forward may raise anything
        raise ConfigError(
            f'precision="bf16" conflicts with model {type(objective.module).__name__}, which '
            f'cannot be trained in it ({first_sentence(error)}): choose precision "float32".'
        ) from error


def _check_gradients(objective: Objective, x: Tensor, y: Tensor) -> str | None:
    """Compare gradients for parameters passed by name with those of ``loss.backward()``.

    Returns:
        None, or why clients must train one at a time.
    """
    model, spec = type(objective.module).__name__, objective.spec
    flat = spec.from_module(objective.module)
    # Values other than the module's, which may be stored in further attributes.
    flat += 0.1 * torch.randn(len(flat), generator=torch.Generator().manual_seed(0)).to(flat)
    try:
        with torch.random.fork_rng(), objective.holding():
            losses = [objective.held_loss(_batch(x, y)) for _ in range(2)]
        check_registered(objective.module, *losses)
        expected = _backward_gradients(objective, flat, _batch(x, y))
        for name, value in expected.items():
            if value.is_sparse:
                raise ConfigError(
                    f"model {model}: parameter {name!r} has a sparse gradient, which executors do "
                    "not support: use sparse=False."
                )
        if not _by_name(objective, flat, x, y):
            raise ConfigError(
                f"model {model} uses its parameter {_hidden(objective, flat, x, y)!r} other than "
                "by its name (from a list of tensors?), so clients cannot have separate values: "
                "use it as an attribute of its layer, or use nn.ParameterList."
            )
        with torch.random.fork_rng():
            named = objective.gradients(spec.views(flat), _batch(x, y))
        if all(_close(named[name], value) for name, value in expected.items()):
            return None
        with torch.random.fork_rng():
            _, gradient = objective.flat_gradient(spec, flat, _batch(x, y))
    except ConfigError:
        raise
    except Exception as error:  # a user's forward may raise anything
        raise ConfigError(
            f"model {model} cannot be differentiated: {first_sentence(error)}."
        ) from error
    for name, value in spec.views(gradient).items():
        if not _close(value, expected[name]):
            raise ConfigError(
                f"model {model}: torch.autograd.grad and loss.backward() give different gradients "
                f"of {name!r}. For torch.utils.checkpoint, choose use_reentrant=False."
            )
    return f"model {model} computes activations again in the backward pass (torch.utils.checkpoint)"


def _batch(x: Tensor, y: Tensor) -> Batch:
    """A batch of copies of the samples, because a module may change its input."""
    weight = x.new_full((len(x),), 1.0 / len(x), dtype=torch.float32)
    return Batch(x.clone(), y, weight, torch.zeros(2, dtype=torch.int32, device=x.device))


def _backward_gradients(objective: Objective, flat: Tensor, batch: Batch) -> dict[str, Tensor]:
    """Gradients at ``flat`` [P] by ``loss.backward()``; the module's own are restored."""
    with torch.random.fork_rng(), objective.holding(flat) as parameters:
        before = {name: parameter.grad for name, parameter in parameters.items()}
        try:
            for parameter in parameters.values():
                parameter.grad = None
            objective.held_loss(batch).backward()  # type: ignore[no-untyped-call]
            return {
                name: torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                for name, parameter in parameters.items()
            }
        finally:
            for name, parameter in parameters.items():
                parameter.grad = before[name]


@torch.no_grad()
def _by_name(objective: Objective, flat: Tensor, x: Tensor, y: Tensor) -> bool:
    """Whether the loss at ``flat`` [P] passed by name equals that of ``flat`` set in the module."""
    with torch.random.fork_rng():
        named = objective.loss(objective.spec.views(flat), _batch(x, y))
    with torch.random.fork_rng(), objective.holding(flat):
        held = objective.held_loss(_batch(x, y))
    return torch.allclose(named, held, rtol=1e-5, atol=1e-6, equal_nan=True)


def _hidden(objective: Objective, flat: Tensor, x: Tensor, y: Tensor) -> str:
    """A parameter that the module uses other than by its name."""
    spec, start = objective.spec, objective.spec.from_module(objective.module)
    for name, value in spec.views(flat).items():
        changed = start.clone()
        spec.views(changed)[name].copy_(value)
        if not _by_name(objective, changed, x, y):
            return name
    return next(iter(spec.shapes))


def _close(gradient: Tensor, expected: Tensor) -> bool:
    """Whether two gradients differ only by rounding.

    The comparison uses norms: in a deep model, one ReLU that flips due to rounding changes the
    gradients of whole layers by some thousandths, and single elements by more than their magnitude.
    Mixing samples changes the gradient much more.
    """
    same = (gradient == expected) | (gradient.isnan() & expected.isnan())
    gap = (gradient - expected).masked_fill(same, 0.0)
    return bool(gap.norm() <= 1e-2 * expected.nan_to_num().norm() + 1e-6 * expected.numel() ** 0.5)


def check_partition(objective: Objective, partition: Partition, x: Tensor) -> None:
    """Raise if submodels of a model do not work, e.g. for an activation with act(0) != 0.

    Compares a submodel with the same submodel padded with idle neurons on ``x`` [batch, ...].
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
            f"{', '.join(layer.name for layer in partition.layers)}: {first_sentence(error)}. "
            "Choose another model, or an algorithm without submodels, such as hfedavg."
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
            f"{', '.join(layer.name for layer in neurons.layers)}: {first_sentence(error)}. "
            "Choose another model, or an algorithm without submodels, such as fedavg."
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
    with torch.no_grad(), torch.random.fork_rng():
        outputs = objective.call(submodels.spec.views(submodels.gather(flat)[0]), x.clone())
    if outputs.dim() != 2 or outputs.shape[1] < 2:  # there is no cross-entropy
        objective = replace(objective, criterion=Probe())
    else:
        objective = replace(objective, criterion=CrossEntropy())
    leaf = submodels.gather(flat)[0].requires_grad_()
    labels = torch.zeros(len(x), dtype=torch.long, device=x.device)
    weight = torch.full((len(x),), 1.0 / len(x), device=x.device)
    key = torch.zeros(2, dtype=torch.int32, device=x.device)
    loss = objective.loss(submodels.spec.views(leaf), Batch(x.clone(), labels, weight, key))
    gradient = torch.autograd.grad(loss, leaf)[0]
    full = torch.zeros_like(flat)
    full[index[index >= 0]] = gradient[index >= 0]
    return full, gradient[index < 0]
