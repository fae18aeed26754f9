"""What is known of a model's structure: partition, neurons, and cycles of a local step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import torch

from channels import Network
from channels.concurrency import cached_property
from wirelessfl.air.links import PADDING
from wirelessfl.air.plan import WholeModel
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.data.dataset import widened
from wirelessfl.models.shapes import Shapes
from wirelessfl.models.submodels import NeuronMap, ParamSpec, Partition, make_partition
from wirelessfl.models.submodels.partition import Scheme, partition_of

if TYPE_CHECKING:
    from wirelessfl.training.objective import Objective

    Samples = tuple[Objective, torch.Tensor, torch.Tensor]
    """A model with its loss, and training samples [samples, ...] with labels [samples]."""

SAMPLES = 8
"""Number of training samples used to validate submodels."""


class SplitModel(Protocol):
    """A model that is split into submodels."""

    @property
    def spec(self) -> ParamSpec:
        """Names and shapes of the parameters."""

    @property
    def shapes(self) -> Shapes | None:
        """Shapes by which the model is split without being built; None to build and validate it."""

    @property
    def module(self) -> torch.nn.Module:
        """The model's torch module."""

    @property
    def objective(self) -> Objective:
        """Model and loss."""

    @property
    def chunk(self) -> int:
        """Clients per batched training step."""

    def first_inputs(self, count: int) -> torch.Tensor:
        """A few training samples [count, ...], on the device."""


@dataclass(frozen=True, eq=False)
class Structure:
    """The model's partition and neurons, found and validated on demand.

    A model that is not trained is built for them only if its shapes are not known.

    Args:
        model: the model.
        layers: for submodels of cells, names of the fully connected layers to split, in order; for
            submodels of clients, names of the layers whose neurons may be omitted. None for the
            model's choice, or for all.
    """

    model: SplitModel
    layers: tuple[str, ...] | None

    @cached_property
    def _found(self) -> dict[Scheme, Partition]:
        return {}

    @property
    def spec(self) -> ParamSpec:
        """Names and shapes of the model's parameters."""
        return self.model.spec

    @property
    def whole(self) -> WholeModel:
        """The full model, and what submodels can omit."""
        return WholeModel(self.spec, self.partition, self.neurons)

    @property
    def samples(self) -> torch.Tensor:
        """A few training samples, on the device."""
        return widened(self.model.first_inputs(SAMPLES))

    def partition(self, scheme: Scheme) -> Partition:
        """The partition of neurons under ``scheme``.

        Raises:
            ConfigError: the layers cannot be split.
        """
        shapes = self.model.shapes
        if scheme not in self._found and shapes is not None:
            partition = partition_of(self.spec, shapes.fully_connected, scheme)
            if partition is not None:
                self._found[scheme] = partition
        if scheme not in self._found:
            from wirelessfl.training.trial import check_partition  # loads PyTorch

            objective = self.model.objective
            made = make_partition(self.model.module, objective.spec, scheme, self.layers)
            check_partition(objective, made, self.samples)
            self._found[scheme] = made
        return self._found[scheme]

    @cached_property
    def _neurons(self) -> NeuronMap:
        from wirelessfl.models.submodels.removable import find_neurons  # loads PyTorch

        module, spec = self.model.module, self.model.objective.spec
        return find_neurons(module, spec, self.samples, self.layers)

    def neurons(self) -> NeuronMap:
        """All neurons that submodels may omit.

        Raises:
            ConfigError: the model cannot be traced, or a named layer must be kept whole.
        """
        return self._neurons

    def padding(self, asked: float | None) -> float:
        """Largest padded fraction of a mixed-width batch.

        Args:
            asked: the configured fraction; None for the default.

        Raises:
            ConfigError: padding is requested, but the model forbids it or has no submodels.
        """
        from wirelessfl.training.trial import check_neurons  # loads PyTorch

        mixes = check_neurons(self.model.objective, self.neurons(), self.samples)
        if mixes is not None and asked:
            raise ConfigError(f"padding is {asked}: {mixes}. Choose 0.")
        if asked is not None:
            return asked
        # Clients that train one by one gain nothing from mixed batches.
        return 0.0 if self.model.chunk == 1 or mixes is not None else PADDING


@dataclass(frozen=True)
class StepCost:
    """Cost of a mini-batch step of the full model, at the configured batch size.

    Args:
        model: class of the model.
        batch_size: samples per step.
        flops: counted FLOPs, see ``wirelessfl.training.step_costs``.
        cycles: number of CPU cycles, ``cycles_per_flop`` times ``flops``.
    """

    model: str
    batch_size: int
    flops: int
    cycles: float

    @property
    def note(self) -> str:
        """The cost as a message for the user."""
        return (
            f"a local step of {self.model} on {self.batch_size} samples takes {self.flops} FLOPs, "
            f"which is cycles_per_step={self.cycles!r}."
        )

    def on(self, network: Network) -> Network:
        """The network with steps of this cost."""
        return replace(network, cycles_per_step=self.cycles)


@dataclass(frozen=True)
class DeviceStep:
    """A mini-batch step of the full model on devices, which have their own seconds and joules.

    Args:
        batch_size: samples per step.
        model: class of the model; None if no device needs its FLOPs.
        flops: counted FLOPs in fully connected layers, in convolutions and in the rest.
    """

    batch_size: int
    model: str | None = None
    flops: tuple[int, int, int] | None = None

    @property
    def note(self) -> str | None:
        """The FLOPs as a message for the user."""
        if self.flops is None:
            return None
        linear, conv, other = self.flops
        return (
            f"a local step of {self.model} on {self.batch_size} samples takes {sum(self.flops)} "
            f"FLOPs: {linear} in fully connected layers, {conv} in convolutions, {other} elsewhere."
        )

    def on(self, network: Network) -> Network:
        """The network whose devices take such steps."""
        return network.at_step(self.batch_size, self.flops)


def counted_cost(
    config: Config, network: Network, samples: Callable[[], Samples]
) -> StepCost | DeviceStep | None:
    """The counted cost of a step; None unless ``cycles_per_flop`` is set, or clients have devices.

    A submodel needs cycles in proportion to its parameters, as with ``cycles_per_step``.

    Args:
        config: settings of the model.
        network: the clients.
        samples: what FLOPs are counted with.

    Raises:
        ConfigError: torch counts no FLOPs in the model.
    """
    per_flop, batch_size = config.network.cycles_per_flop, config.training.batch_size
    devices = network.devices
    if devices is None and per_flop is None:
        return None
    if devices is not None and not devices.need_flops:
        return DeviceStep(batch_size)
    from wirelessfl.training.step_costs import step_flops  # loads PyTorch

    objective, inputs, labels = samples()
    model = type(objective.module).__name__
    kinds = step_flops(objective, inputs, labels, batch_size)
    if sum(kinds) == 0:
        cause, remedy = f"cycles_per_flop is {per_flop}", "cycles_per_step"
        if devices is not None:
            cause, remedy = "devices have flop_per_second", "seconds_per_sample"
        raise ConfigError(
            f"{cause}, but torch counts no FLOPs in model {model}, which has no matrix products or "
            f"convolutions. Give {remedy} instead."
        )
    if per_flop is None:
        return DeviceStep(batch_size, model, kinds)
    return StepCost(model, batch_size, sum(kinds), per_flop * sum(kinds))
