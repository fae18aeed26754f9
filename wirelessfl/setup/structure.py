"""The partition and the neurons of a model, from which submodels are formed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

from channels.concurrency import cached_property
from wirelessfl.data.dataset import widened
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.plan import WholeModel
from wirelessfl.rounds.training_settings import PADDING
from wirelessfl.submodels import NeuronMap, ParamSpec, Partition, make_partition
from wirelessfl.submodels.partition import Scheme

if TYPE_CHECKING:
    from wirelessfl.training.objective import Objective

SAMPLES = 8
"""Number of training samples used to validate submodels."""


class SplitModel(Protocol):
    """A model that is split into submodels."""

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
        return self.model.objective.spec

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
        if scheme not in self._found:
            from wirelessfl.training.trial import check_partition  # loads PyTorch

            objective = self.model.objective
            made = make_partition(self.model.module, objective.spec, scheme, self.layers)
            check_partition(objective, made, self.samples)
            self._found[scheme] = made
        return self._found[scheme]

    @cached_property
    def _neurons(self) -> NeuronMap:
        from wirelessfl.submodels.removable import find_neurons  # loads PyTorch

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
