"""A model that is planned with, but not trained, and its partition and neurons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from channels.concurrency import cached_property
from channels.streams import Stream
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.data.dataset import Facts
from wirelessfl.losses import FunctionLoss, Probe
from wirelessfl.models.shapes import Shapes, known_shapes
from wirelessfl.setup.data import Loaded
from wirelessfl.setup.given_objects import GivenObjects
from wirelessfl.setup.models import configured_model
from wirelessfl.setup.step_costs import StepCost, counted_cost
from wirelessfl.setup.structure import Structure
from wirelessfl.submodels import ParamSpec, Partition
from wirelessfl.submodels.partition import Scheme, partition_of

if TYPE_CHECKING:
    from wirelessfl.training.objective import Objective


@dataclass(frozen=True, eq=False)
class UntrainedModel:
    """A model that is planned with, but not trained.

    It is built on demand, because that needs PyTorch, which takes seconds to load: most prices need
    only the shapes of its parameters. Its data are read only if their facts are not known.

    Args:
        config: the settings of the model.
        given: Python objects that replace settings.
        stream: randomness of the initial weights.

    Raises:
        ConfigError: on demand, the model cannot be built, or no FLOPs are counted.
        DataError: on demand, the data set must be loaded, but is missing or damaged.
    """

    config: Config
    given: GivenObjects
    stream: Stream
    chunk: int = 1

    @cached_property
    def facts(self) -> Facts | None:
        """What is known of the data without reading them; None if data are given."""
        return None if self.given.data is not None else self.config.dataset.facts()

    @cached_property
    def shapes(self) -> Shapes | None:
        """Shapes of the parameters; None if the model must be built to know them."""
        choice, facts = self.config.model, self.facts
        if self.given.model is not None or choice.layers is not None or facts is None:
            return None
        hidden = getattr(choice, "hidden", None)
        return known_shapes(choice.name, facts.input_shape, facts.classes, hidden)

    @cached_property
    def spec(self) -> ParamSpec:
        """Names and shapes of the parameters."""
        return self.objective.spec if self.shapes is None else ParamSpec(self.shapes.parameters)

    @property
    def classes(self) -> int:
        """Number of outputs."""
        return self.data.classes if self.facts is None else self.facts.classes

    @cached_property
    def data(self) -> Dataset:
        """The data set, or zeros with its shapes."""
        return data_facts(self.config) if self.given.data is None else self.given.data

    @cached_property
    def module(self) -> torch.nn.Module:
        """The model's torch module."""
        if self.given.model is not None:
            return self.given.model
        weights = self.stream.child("initial weights")
        return configured_model(self.config.model, self.data, weights)

    @cached_property
    def objective(self) -> Objective:
        """Model and loss."""
        from wirelessfl.training.objective import Objective

        loss = self.config.loss  # FLOPs are those of the layers
        if isinstance(loss, FunctionLoss) or not loss.fits(self.data.train_labels):
            loss = Probe()
        return replace(Objective.of(self.module), criterion=loss)

    @cached_property
    def step_cost(self) -> StepCost | None:
        """Counted cost of a full-model step; None unless ``cycles_per_flop`` is set."""
        if self.config.network.cycles_per_flop is None:
            return None
        data = self.data
        return counted_cost(self.config, self.objective, data.train_inputs, data.train_labels)

    def first_inputs(self, count: int) -> torch.Tensor:
        """A few samples, [count, ...]."""
        return self.data.train_inputs[:count]


@dataclass(frozen=True, eq=False)
class UntrainedStructure(Structure):
    """The partition and the neurons of a model that is built only if its shapes are not known."""

    model: UntrainedModel

    @property
    def spec(self) -> ParamSpec:
        """Names and shapes of the model's parameters."""
        return self.model.spec

    def partition(self, scheme: Scheme) -> Partition:
        """The partition of neurons under ``scheme``; errors as in ``Structure``."""
        shapes = self.model.shapes
        if scheme not in self._found and shapes is not None:
            known = partition_of(self.spec, shapes.fully_connected, scheme)
            if known is not None:
                self._found[scheme] = known
        return super().partition(scheme)


def data_facts(config: Config) -> Dataset:
    """The configured data set as far as it determines the model, read only if it is not known.

    Facts of built-in data sets are declared with them. Data sets of the user, and texts whose
    vocabulary depends on a tokenizer's files, are loaded.

    Raises:
        ConfigError: a setting conflicts with the data set.
        DataError: the data set must be loaded, but is missing or damaged.
    """
    choice = config.dataset
    facts = choice.facts()
    if facts is None:
        return Loaded().dataset(choice, config.data.data_dir)
    return facts.zeros(choice.name)
