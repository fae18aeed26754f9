"""What submodels may leave out of a model, and the step sizes of its clients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from wirelessfl.data.dataset import widened
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.settings import PADDING
from wirelessfl.setup.trained_model import TrainedModel
from wirelessfl.submodels import NeuronMap, Partition, find_neurons, make_partition
from wirelessfl.submodels.partition import Scheme
from wirelessfl.training.trial import check_neurons, check_partition

SAMPLES = 8
"""Training samples on which submodels are tried."""


@dataclass(frozen=True, eq=False)
class Structure:
    """The model's partition and neurons, for submodels; found and tried on demand.

    Args:
        model: the model.
        layers: fully connected layers in order, if the settings name them.
    """

    model: TrainedModel
    layers: tuple[str, ...] | None

    @cached_property
    def _found(self) -> dict[Scheme, Partition]:
        return {}

    @property
    def samples(self) -> Tensor:
        """A few training samples, on the device."""
        inputs = self.model.data.train_inputs[:SAMPLES]
        return widened(inputs.to(self.model.computing.device))

    def partition(self, scheme: Scheme) -> Partition:
        """The neuron partition by ``scheme``.

        Raises:
            ConfigError: the layers cannot be split.
        """
        if scheme not in self._found:
            objective = self.model.objective
            made = make_partition(self.model.module, objective.spec, scheme, self.layers)
            check_partition(objective, made, self.samples)
            self._found[scheme] = made
        return self._found[scheme]

    @cached_property
    def _neurons(self) -> NeuronMap:
        return find_neurons(self.model.module, self.model.objective.spec, self.samples)

    def neurons(self) -> NeuronMap:
        """All neurons that a submodel may leave out.

        Raises:
            ConfigError: the model cannot be traced.
        """
        return self._neurons

    def padding(self, asked: float | None) -> float:
        """Largest padded fraction of a batch of clients with submodels of different widths.

        Args:
            asked: what the settings say; None: nothing.

        Raises:
            ConfigError: padding is requested and the model forbids it, or cannot be cut.
        """
        mixes = check_neurons(self.model.objective, self.neurons(), self.samples)
        if mixes is not None and asked:
            raise ConfigError(f"padding is {asked}: {mixes}. Choose 0.")
        if asked is not None:
            return asked
        # A batch of several gains nothing where clients train one by one.
        return 0.0 if self.model.executor.chunk == 1 or mixes is not None else PADDING
