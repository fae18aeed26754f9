"""What is trained: a model as a pure function of its flat parameters, and its loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from wirelessfl.errors import ConfigError
from wirelessfl.models.dropout import StreamDropout
from wirelessfl.submodels import ParamSpec, Partition, Submodels, extract
from wirelessfl.training.penalties import Anchors, Outputs, Penalty, need_features, total


@dataclass(frozen=True)
class Task:
    """A model with a cross-entropy loss over classes, and further terms where they are given.

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
            if isinstance(layer, nn.modules.batchnorm._NormBase) and layer.track_running_stats:
                raise ConfigError(
                    f"layer {name!r} is a {type(layer).__name__} with running statistics, which "
                    "clients would share. Use nn.GroupNorm (or track_running_stats=False, and "
                    "clients train one at a time)."
                )
        keys = tuple(
            f"{name}.key" if name else "key"
            for name, layer in module.named_modules()
            if isinstance(layer, StreamDropout) and layer.p > 0
        )
        return cls(module, ParamSpec.of(module), keys)

    def loss(
        self,
        params: dict[str, Tensor],
        x: Tensor,
        y: Tensor,
        weight: Tensor,
        key: Tensor,
        anchors: Anchors = (),
        penalties: tuple[Penalty, ...] = (),
    ) -> Tensor:
        """Weighted training loss of one batch: cross-entropy and penalties.

        Args:
            params: by name.
            x, y, weight: [batch, ...] alike.
            key: [2], of dropout.
            anchors: of the penalties.
            penalties: further terms of a sample's loss.
        """
        tensors = params | dict.fromkeys(self.dropout_keys, key)
        own = self.outputs(x, tensors, features=need_features(penalties))
        return self._loss(own, x, y, weight, anchors, penalties)

    def _loss(
        self,
        own: Outputs,
        x: Tensor,
        y: Tensor,
        weight: Tensor,
        anchors: Anchors,
        penalties: tuple[Penalty, ...],
    ) -> Tensor:
        loss = F.cross_entropy(own.logits, y, reduction="none")
        if penalties:
            with self._evaluating():
                others = [
                    {n: self.outputs(x, tensors, features=penalty.features) for n, tensors in of}
                    for penalty, of in zip(penalties, map(dict.items, anchors), strict=True)
                ]
            loss = loss + total(penalties, own, others, y)
        return (loss * weight).sum()

    def outputs(
        self, x: Tensor, params: dict[str, Tensor] | None = None, *, features: bool = False
    ) -> Outputs:
        """What the model gives for ``x`` [batch, ...].

        Args:
            x: samples.
            params: by name; None: those that the module holds.
            features: whether they are wanted, beside the logits.

        Raises:
            ConfigError: they are, and the model has none.
        """
        if not features:
            return Outputs(self._logits(x, params))
        seen: list[Tensor] = []

        def look(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            seen[:] = inputs[:1]  # the last layer's remain

        linear = [layer for layer in self.module.modules() if isinstance(layer, nn.Linear)]
        hooks = [layer.register_forward_pre_hook(look) for layer in linear]
        try:
            logits = self._logits(x, params)
        finally:
            for hook in hooks:
                hook.remove()
        if not seen:
            raise ConfigError(
                f"model {type(self.module).__name__} runs no nn.Linear, whose input would be the "
                "features that the algorithm compares. Have one at its end."
            )
        return Outputs(logits, seen[0].flatten(1))

    def _logits(self, x: Tensor, params: dict[str, Tensor] | None) -> Tensor:
        logits: Tensor = (
            self.module(x) if params is None else functional_call(self.module, params, (x,))
        )
        return logits

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Evaluation mode for a while."""
        training = [layer for layer in self.module.modules() if layer.training]
        try:
            for layer in training:
                layer.training = False
            yield
        finally:
            for layer in training:
                layer.training = True

    def gradients(
        self,
        params: dict[str, Tensor],
        x: Tensor,
        y: Tensor,
        weight: Tensor,
        keys: Tensor,
        anchors: Anchors = (),
        penalties: tuple[Penalty, ...] = (),
    ) -> dict[str, Tensor]:
        """Gradients of ``loss`` by name.

        Args:
            params: [clients, *shape] by name, or those of one client.
            x, y, weight: [clients, batch, ...] alike.
            keys: [clients, 2], or [2] for one client.
            anchors: of the penalties, of all clients or of one.
            penalties: as for ``loss``.
        """
        loss_of = partial(self.loss, penalties=penalties)
        if keys.ndim == 2:
            found: dict[str, Tensor] = vmap(grad(loss_of))(params, x, y, weight, keys, anchors)
            return found
        leaves = {name: value.detach().requires_grad_() for name, value in params.items()}
        loss = loss_of(leaves, x, y, weight, keys, anchors)
        return dict(zip(leaves, _derivatives(loss, leaves.values()), strict=True))

    def own_gradients(
        self, flat: Tensor, x: Tensor, y: Tensor, weight: Tensor, key: Tensor
    ) -> dict[str, Tensor]:
        """The same for one client's ``flat`` [P], with the parameters put into the module."""
        with self.holding() as parameters:
            for name, value in self.spec.views(flat).items():
                parameters[name].data = value
            loss = self.own_loss(x, y, weight, key)
            return dict(zip(parameters, _derivatives(loss, parameters.values()), strict=True))

    def own_loss(
        self,
        x: Tensor,
        y: Tensor,
        weight: Tensor,
        key: Tensor,
        anchors: Anchors = (),
        penalties: tuple[Penalty, ...] = (),
    ) -> Tensor:
        """The same for the parameters that the module holds, see ``holding``."""
        for layer in self._dropouts():
            layer.key = key
        own = self.outputs(x, features=need_features(penalties))
        return self._loss(own, x, y, weight, anchors, penalties)

    def _dropouts(self) -> list[StreamDropout]:
        layers = (self.module.get_submodule(key.rpartition(".")[0]) for key in self.dropout_keys)
        return [layer for layer in layers if isinstance(layer, StreamDropout)]

    @contextmanager
    def holding(self) -> Iterator[dict[str, nn.Parameter]]:
        """The module's trainable parameters by name, for ``data`` to be put into them.

        For one client this spares the overhead of a functional call. The module is left as it was.
        """
        parameters = {n: p for n, p in self.module.named_parameters() if n in self.spec.shapes}
        before = {name: parameter.data for name, parameter in parameters.items()}
        keys = [(layer, layer.key) for layer in self._dropouts()]
        try:
            yield parameters
        finally:
            for name, parameter in parameters.items():
                parameter.data = before[name]
            for layer, key in keys:
                layer.key = key


def _derivatives(loss: Tensor, leaves: Iterable[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, list(leaves), materialize_grads=True)


def why_alone(task: Task, x: Tensor, y: Tensor, classes: int) -> str | None:
    """Why clients cannot train ``task`` together, on a few samples; None where they can.

    Args:
        task: to be tried out.
        x: [batch, ...], at least two samples.
        y: [batch], their labels.
        classes: of the data set.

    Raises:
        ConfigError: the model does not run on the samples, does not give logits [batch, classes],
            or changes its buffers.
    """
    module, name = task.module, type(task.module).__name__
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
            f"model {name} gives {shape or type(logits).__name__} for {len(x)} samples: logits "
            f"[batch, {classes}] are needed, one for each class of the data set."
        )
    for key, value in module.named_buffers():
        if not torch.equal(value, buffers[key]):
            raise ConfigError(
                f"model {name} changes its buffer {key!r} in training, which clients would share. "
                "Keep such state in parameters, or do without."
            )
    _check_names(task, x, y)
    if draws:
        return (
            f"model {name} draws from torch's global generator; wirelessfl.models.StreamDropout "
            "would not"
        )
    try:
        two = task.spec.from_module(module).expand(2, -1)
        half = x.new_zeros((2, len(x)), dtype=torch.float32)
        half[:, :2] = 0.5  # the samples behind the second are padding
        zero = torch.zeros(2, dtype=torch.int32, device=x.device)
        xs, ys = (t.expand(2, *t.shape) for t in (x, y))
        padded = task.gradients(task.spec.views(two), xs, ys, half, zero.expand(2, 2))
    except RuntimeError as error:
        return f"model {name} does not run under vmap ({str(error).splitlines()[0]})"
    tight = task.gradients(task.spec.views(two[0]), x[:2], y[:2], half[0, :2], zero)
    for key, value in tight.items():
        if not all(_close(client, value) for client in padded[key]):
            return f"model {name} mixes the samples of a batch, so batches cannot be padded"
    return None


def _check_names(task: Task, x: Tensor, y: Tensor) -> None:
    """Refuse a module that finds its parameters in another way than by their names.

    Raises:
        ConfigError: one of them has a gradient that disappears when it is given by its name.
    """
    flat = task.spec.from_module(task.module)
    weight = x.new_full((len(x),), 1.0 / len(x), dtype=torch.float32)
    key = torch.zeros(2, dtype=torch.int32, device=x.device)
    with torch.random.fork_rng():
        named = task.gradients(task.spec.views(flat), x, y, weight, key)
        own = task.own_gradients(flat, x, y, weight, key)
    for name, value in named.items():
        if bool(own[name].any()) and not bool(value.any()):
            raise ConfigError(
                f"model {type(task.module).__name__} uses its parameter {name!r} by another way "
                "than its name (a list of tensors of its own?), so clients cannot have their own. "
                "Use it through the layer that holds it, or nn.ParameterList."
            )


def _close(one: Tensor, two: Tensor) -> bool:
    """Whether two gradients differ by rounding alone.

    Judged by their norms: in a deep model one ReLU that flips by rounding moves whole layers by
    some thousandths, and single elements by more than their size. Mixed samples move it all.
    """
    same = (one == two) | (one.isnan() & two.isnan())
    gap = (one - two).masked_fill(same, 0.0)
    return bool(gap.norm() <= 1e-2 * two.nan_to_num().norm() + 1e-6 * two.numel() ** 0.5)


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
    task.module.eval()  # dropout would draw different masks for the two
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
