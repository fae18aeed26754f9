"""The training objective: a model as a pure function of its flat parameters, and its loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from wirelessfl.base.errors import ConfigError
from wirelessfl.models.losses import CrossEntropy, Loss
from wirelessfl.models.parts import StreamDropout
from wirelessfl.models.shapes import Declared
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.models.submodels.flat import call_with, slots
from wirelessfl.training.batches import Batch
from wirelessfl.training.cohort import (
    NO_TERMS,
    Anchors,
    Factors,
    Outputs,
    Terms,
    need_features,
    scaled,
    total,
)


@dataclass(frozen=True)
class Objective:
    """A model with a loss, cross-entropy by default, and optional further terms.

    Only the module's frozen tensors are used (a LoRA base, buffers): trainable parameters always
    come from flat vectors.
    """

    module: nn.Module
    spec: ParamSpec
    dropout_keys: tuple[str, ...] = field(default=())
    slots: tuple[tuple[str, str], ...] = field(default=())
    """Additional names of tied parameters, each with its name in ``spec``."""
    criterion: Loss = field(default_factory=CrossEntropy)
    """The loss of each sample."""
    precision: str = "float32"
    """Of the products and convolutions of ``outputs``, see ``wirelessfl.training.precision``."""

    @classmethod
    def of(cls, module: nn.Module) -> Objective:
        """The objective for training ``module``.

        Raises:
            ConfigError: a layer has running statistics, which would leak between clients, or is
                compiled by TorchScript, a parameter has hooks or was made in inference mode, or the
                parameters cannot be trained, see ``ParamSpec.of``.
        """
        for name, layer in module.named_modules():
            if isinstance(layer, nn.modules.batchnorm._NormBase) and layer.track_running_stats:
                raise ConfigError(
                    f"layer {name!r} is a {type(layer).__name__} with running statistics, which "
                    "clients would share: use nn.GroupNorm, or track_running_stats=False (clients "
                    "then train one at a time)."
                )
            if isinstance(layer, torch.jit.ScriptModule):
                raise ConfigError(
                    f"model {type(module).__name__} has a TorchScript module, whose parameters "
                    "cannot be replaced by those of clients: give the module before "
                    "torch.jit.script or torch.jit.trace."
                )
        for name, parameter in module.named_parameters():
            if not nn.parameter.is_lazy(parameter) and parameter.is_inference():
                raise ConfigError(
                    f"parameter {name!r} was made in torch.inference_mode, so it cannot be "
                    "trained: make the model outside of it."
                )
            if parameter._backward_hooks or parameter._post_accumulate_grad_hooks:
                raise ConfigError(
                    f"parameter {name!r} has hooks, but clients train copies of it without them: "
                    "remove them. An algorithm can change gradients in its method gradient."
                )
        keys = tuple(
            f"{name}.key" if name else "key"
            for name, layer in module.named_modules()
            if isinstance(layer, StreamDropout) and layer.p > 0
        )
        spec = ParamSpec.of(module)
        return cls(module, spec, keys, slots(module, spec))

    @property
    def bytes_per_sample(self) -> int:
        """Bytes per training sample as declared by the module; 0 if it declares none."""
        return Declared.of(self.module).bytes_per_sample

    @property
    def test_batch(self) -> int:
        """Samples per test batch: the module's declared number, or the default."""
        return Declared.of(self.module).test_batch

    def loss(self, params: dict[str, Tensor], batch: Batch, terms: Terms = NO_TERMS) -> Tensor:
        """Weighted training loss of one client's batch: the loss and further terms.

        Args:
            params: parameters by name.
            terms: further terms of that client's loss.
        """
        params = scaled(params, terms.factors)
        tensors = params | dict.fromkeys(self.dropout_keys, batch.keys)
        outputs = self.outputs(
            _input(batch, terms), tensors, features=need_features(terms.penalties)
        )
        return self._loss(outputs, batch, terms)

    def _loss(self, outputs: Outputs, batch: Batch, terms: Terms) -> Tensor:
        loss = self.criterion.values(outputs.logits, batch.y)
        if terms.penalties:
            with self._evaluating():
                others = [
                    {
                        name: self.outputs(
                            _input(batch, terms),
                            scaled(tensors, terms.factors),
                            features=penalty.features,
                        )
                        for name, tensors in anchors.items()
                    }
                    for penalty, anchors in zip(terms.penalties, terms.anchors, strict=True)
                ]
            loss = loss + total(terms.penalties, outputs, others, batch.y)
        return (loss * batch.weight).sum()

    def outputs(
        self, x: Tensor, params: dict[str, Tensor] | None = None, *, features: bool = False
    ) -> Outputs:
        """The model's outputs for ``x`` [batch, ...].

        Args:
            params: parameters by name; None for the module's parameters.
            features: whether to return features in addition to logits.
        """
        if self.precision != "bf16":
            return self._outputs(x, params, features=features)
        # Without the cache, gradients of a tensor that is used twice are added in float32.
        with torch.autocast(x.device.type, torch.bfloat16, cache_enabled=False):
            outputs = self._outputs(x, params, features=features)
        wide = None if outputs.features is None else _widened(outputs.features)
        return Outputs(_widened(outputs.logits), wide)

    def _outputs(self, x: Tensor, params: dict[str, Tensor] | None, *, features: bool) -> Outputs:
        if not features:
            return Outputs(self._logits(x, params))
        seen: list[Tensor] = []

        def look(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            seen[:] = inputs[:1]  # the last layer's input remains

        linear = [layer for layer in self.module.modules() if isinstance(layer, nn.Linear)]
        hooks = [layer.register_forward_pre_hook(look) for layer in linear]
        try:
            logits = self._logits(x, params)
        finally:
            for hook in hooks:
                hook.remove()
        if not seen:
            raise ConfigError(
                f"model {type(self.module).__name__} runs no nn.Linear, but the algorithm compares "
                "features, the input of the last nn.Linear: end the model with an nn.Linear."
            )
        return Outputs(logits, seen[0].flatten(1))

    def _logits(self, x: Tensor, params: dict[str, Tensor] | None) -> Tensor:
        logits: Tensor = self.module(x) if params is None else self.call(params, x)
        return logits

    def call(self, params: Mapping[str, Tensor], x: Tensor) -> Tensor:
        """The module's output for ``x`` [batch, ...]; ``params`` lists tied parameters once."""
        return call_with(self.module, params, self.slots, x)

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Put the module in evaluation mode and restore the layers' modes at the end."""
        training = [layer for layer in self.module.modules() if layer.training]
        try:
            for layer in training:
                layer.training = False
            yield
        finally:
            for layer in training:
                layer.training = True

    def gradients(
        self, params: dict[str, Tensor], batch: Batch, terms: Terms = NO_TERMS
    ) -> dict[str, Tensor]:
        """Gradients of ``loss`` by name.

        Args:
            params: parameters [clients, *shape] by name, or those of one client.
            batch: samples of all clients, or of one.
            terms: further terms of the loss, for all clients or for one.
        """
        if batch.keys.ndim == 2:

            def loss_of(
                params: dict[str, Tensor],
                batch: Batch,
                anchors: Anchors = (),
                factors: Factors = NO_TERMS.factors,
            ) -> Tensor:
                return self.loss(params, batch, Terms(terms.penalties, anchors, factors))

            gradients_of: Callable[..., dict[str, Tensor]] = vmap(grad(loss_of))
            if terms.factors:  # empty arguments slow vmap down
                return gradients_of(params, batch, terms.anchors, dict(terms.factors))
            if terms.penalties:
                return gradients_of(params, batch, terms.anchors)
            return gradients_of(params, batch)
        leaves = {name: value.detach().requires_grad_() for name, value in params.items()}
        loss = self.loss(leaves, batch, terms)
        return dict(zip(leaves, _derivatives(loss, leaves.values()), strict=True))

    def flat_gradient(
        self, spec: ParamSpec, flat: Tensor, batch: Batch, terms: Terms = NO_TERMS
    ) -> tuple[Tensor, Tensor]:
        """``loss`` and its gradient [P] at one client's ``flat`` [P], with the shapes of ``spec``.

        The parameters stay replaced during the backward pass, because a module may run layers again
        in it (``torch.utils.checkpoint``).
        """
        leaf = flat.detach().clone().requires_grad_()
        params = scaled(spec.views(leaf), terms.factors)
        tensors = params | dict.fromkeys(self.dropout_keys, batch.keys)
        tensors |= {alias: params[name] for alias, name in self.slots}

        def both() -> tuple[Tensor, Tensor]:
            outputs = self.outputs(_input(batch, terms), features=need_features(terms.penalties))
            loss = self._loss(outputs, batch, terms)
            return loss.detach(), torch.autograd.grad(loss, leaf)[0]

        replaced = {f"module.{name}": value for name, value in tensors.items()}
        pair: tuple[Tensor, Tensor] = functional_call(
            _Around(self.module, both), replaced, (), tie_weights=False
        )
        return pair

    def held_loss(self, batch: Batch, terms: Terms = NO_TERMS) -> Tensor:
        """``loss`` for the parameters currently set in the module, see ``holding``.

        The caller has multiplied these parameters by ``terms.factors``.
        """
        for layer in self._dropouts():
            layer.key = batch.keys
        outputs = self.outputs(_input(batch, terms), features=need_features(terms.penalties))
        return self._loss(outputs, batch, terms)

    def _dropouts(self) -> list[StreamDropout]:
        layers = (self.module.get_submodule(key.rpartition(".")[0]) for key in self.dropout_keys)
        return [layer for layer in layers if isinstance(layer, StreamDropout)]

    @contextmanager
    def holding(self, flat: Tensor | None = None) -> Iterator[dict[str, nn.Parameter]]:
        """Yield the module's trainable parameters by name, and restore them at the end.

        For one client this avoids the overhead of a functional call.

        Args:
            flat: parameters [P] to set in the module; None if the caller sets their ``data``.
        """
        parameters = {n: p for n, p in self.module.named_parameters() if n in self.spec.shapes}
        before = {name: parameter.data for name, parameter in parameters.items()}
        keys = [(layer, layer.key) for layer in self._dropouts()]
        try:
            if flat is not None:
                for name, value in self.spec.views(flat).items():
                    parameters[name].data = value
            yield parameters
        finally:
            for name, parameter in parameters.items():
                parameter.data = before[name]
            for layer, key in keys:
                layer.key = key


class _Around(nn.Module):
    """Calls ``function`` as if it were the forward pass of a model that contains ``module``."""

    def __init__(self, module: nn.Module, function: Callable[[], Any]) -> None:
        super().__init__()
        self.module, self.function = module, function

    def forward(self) -> Any:
        """The value of the function."""
        return self.function()


def _input(batch: Batch, terms: Terms) -> Tensor:
    """The batch's samples; a copy if several models run on them.

    A module may change its input in place, e.g. normalise it.
    """
    return batch.x.clone() if terms.penalties else batch.x


def _widened(outputs: Tensor) -> Tensor:
    """Outputs of rounded products as float32, as losses need them."""
    return outputs.float() if outputs.dtype == torch.bfloat16 else outputs


def _derivatives(loss: Tensor, leaves: Iterable[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, list(leaves), materialize_grads=True)
