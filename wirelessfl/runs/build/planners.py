"""Builds what plans a run's rounds: network, model without training, and planner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
import torch

from channels import Network
from channels.arrays import FloatArray
from channels.concurrency import cached_property
from channels.streams import Stream
from wirelessfl.air.batteries import EnergyLimits
from wirelessfl.air.links import Links, TrainingSettings, downlink_rates
from wirelessfl.air.recharge import NoRecharge
from wirelessfl.algorithms.step_sizes import unchanged
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.config.sections.network import HANDOVER
from wirelessfl.config.sections.training import PerClient
from wirelessfl.data import Dataset
from wirelessfl.data.dataset import Facts
from wirelessfl.data.label_groups import LabelGroups
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.engine.selection import RandomSelection
from wirelessfl.engine.selection.selection import Participation
from wirelessfl.engine.tasks.handler import Records
from wirelessfl.models.losses import FunctionLoss, Probe
from wirelessfl.models.shapes import Shapes, known_shapes
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.runs.build.computing import step_counts
from wirelessfl.runs.build.given import NOTHING, GivenObjects
from wirelessfl.runs.build.network import build_network
from wirelessfl.runs.build.samples import Loaded, configured_model
from wirelessfl.runs.build.structure import DeviceStep, StepCost, Structure, counted_cost
from wirelessfl.training.steps import StepCounts

if TYPE_CHECKING:
    from wirelessfl.runs.build.trained_model import TrainedModel
    from wirelessfl.training.objective import Objective

Model: TypeAlias = "TrainedModel | UntrainedModel"


@dataclass(frozen=True, eq=False)
class UntrainedModel:
    """A model that is planned with, but not trained.

    It is built on demand, because that needs PyTorch, which takes seconds to load: most prices need
    only the shapes of its parameters. Its data are read only if their facts are not known.

    Args:
        config: the settings of the model.
        given: Python objects that replace settings.
        network: cells and clients.
        stream: randomness of the initial weights.
        split_stream: randomness of the split.

    Raises:
        ConfigError: on demand, the model cannot be built, or no FLOPs are counted.
        DataError: on demand, the data set must be loaded, but is missing or damaged.
    """

    config: Config
    given: GivenObjects
    network: Network
    stream: Stream
    split_stream: Stream

    trains = False
    chunk = threads = 1

    @classmethod
    def of(cls, config: Config, objects: GivenObjects = NOTHING) -> Self:
        """The model of a run of one model, and its network; arguments as in ``build``."""
        stream = Stream(config.run.seed)
        network = objects.network or build_network(config.network, stream, config)
        return cls(config, objects, network, stream, stream.child("split"))

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
    def step_cost(self) -> StepCost | DeviceStep | None:
        """Counted cost of a full-model step, see ``counted_cost``."""
        return counted_cost(
            self.config,
            self.network,
            lambda: (self.objective, self.data.train_inputs, self.data.train_labels),
        )

    @property
    def notes(self) -> list[str]:
        """Messages for the user, one line each."""
        note = None if self.step_cost is None else self.step_cost.note
        return [] if note is None else [note]

    @cached_property
    def structure(self) -> Structure:
        """The partition and the neurons, found on demand."""
        return Structure(self, self.config.model.layers)

    @cached_property
    def groups(self) -> LabelGroups | None:
        """Groups of clients that attend different sessions; None without groups."""
        presence = self.config.presence
        return None if presence is None else presence.groups(self.classes, self.network.cell_of)

    @cached_property
    def steps(self) -> StepCounts:
        """Number of local steps of each client, for which passes need the split of the data."""
        config, data = self.config, self.given.data
        if config.training.local_epochs is None:
            return step_counts(config.training, None)
        loaded = Loaded()
        if data is None:
            data = loaded.dataset(config.dataset, config.data.data_dir)
        samples, *_ = loaded.split(
            config.data, config, data, self.network, self.split_stream, self.given.split
        )
        return step_counts(config.training, samples.sizes)

    @cached_property
    def start(self) -> torch.Tensor:
        """Initial parameters [P]."""
        return self.objective.spec.from_module(self.module).cpu()

    def sample_weights(self, weighting: str) -> None:
        """None: numbers of samples are not known."""

    def first_inputs(self, count: int) -> torch.Tensor:
        """A few samples, [count, ...]."""
        return self.data.train_inputs[:count]


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


@dataclass(frozen=True)
class Untrained:
    """How a run is built that is not trained: its costs are counted, with a row for each round.

    Args:
        rounds: number of rounds; None for that of the settings.
        joules: whether energy is counted.
        model: the model of another run with the same settings of it; None for a new one.
        records: of a run of tasks, receives the clients' work and all merges.
    """

    rounds: int | None = None
    joules: bool = True
    model: UntrainedModel | None = None
    records: Records | None = None


def planner_without_data(config: Config, objects: GivenObjects = NOTHING) -> Planner:
    """The planner of a run in rounds, without data, split and executor.

    Args:
        config: the settings, resolved, with the given objects marked.
        objects: Python objects that replace settings.

    Raises:
        ConfigError: settings conflict.
        DataError: the data set must be loaded, but is missing or damaged.
    """
    model = UntrainedModel.of(config, objects)
    return make_planner(config, model.network, model)


def energy_limits(config: Config, network: Network) -> EnergyLimits | None:
    """Budgets and batteries of the clients; None for no limits.

    Raises:
        ConfigError: the network has no devices with batteries.
    """
    training, stream = config.training, Stream(config.run.seed, ("energy",))
    if training.client_joules is None and training.battery_joules is None:
        return None

    def of_clients(name: str, value: PerClient | None) -> float | FloatArray | None:
        if isinstance(value, tuple):
            return stream.child(name).generator().uniform(*value, network.clients)
        if value != "devices":
            return value
        column: FloatArray | None = getattr(network, "battery_joules", None)
        if column is None:
            raise ConfigError(
                f"{name}=devices conflicts with the network, whose devices have no "
                "battery_joules: give joules, or LOW,HIGH."
            )
        return column

    recharge = config.recharge or NoRecharge()
    recharge.check()
    return EnergyLimits(
        of_clients("client_joules", training.client_joules),
        of_clients("battery_joules", training.battery_joules),
        recharge,
        training.on_empty == "drop",
        stream.child("recharge"),
    )


def make_planner(config: Config, network: Network, model: Model) -> Planner:
    """The planner of a run in rounds.

    Without training, weights of means by numbers of samples are not known: clients have equal
    weights. Nor do step sizes matter, which may be undefined beyond the run's last round.

    Args:
        config: the settings.
        network: cells and clients.
        model: the model.

    Raises:
        ConfigError: a round has more clients than a session, or the run cannot hand clients over.
    """
    for need in HANDOVER if network.hands_over else ():
        if not need.met(config.frame, config.network):
            raise ConfigError(f"handover of the network {need.why_not(config.frame)}.")
    groups, step_cost, steps = model.groups, model.step_cost, model.steps
    per_round = config.training.clients_per_round
    if groups is not None and per_round is not None:
        fewest = int(np.bincount(groups.group_of).min())
        if per_round > fewest:
            raise ConfigError(
                f"clients_per_round={per_round} exceeds the number of clients in a session, "
                f"{fewest} of {network.clients}: choose 1 to {fewest}."
            )
    if step_cost is not None:
        network = step_cost.on(network)
    uplink, section, training = config.uplink, config.network, config.training
    failures = config.failures
    select = config.select
    back = section.backhaul_mbps
    return Planner(
        config.algorithm,
        Links(
            network,
            uplink,
            coherence=section.coherence or uplink.coherence,
            downlink_bps=downlink_rates(network, uplink, section.downlink_mbps),
            backhaul_bps=back and 1e6 * back,
            failures=None if failures is None or failures.never else failures,
            pilot_symbols=section.pilot_symbols or 0,
        ),
        model.structure.whole,
        TrainingSettings(
            local_steps=steps.common,
            client_steps=steps.each,
            edge_rounds=training.edge_rounds or 1,
            uplink_compression=config.uplink_compression,
            downlink_compression=config.downlink_compression,
            cutoff_seconds=training.cutoff_seconds,
        ),
        Stream(config.run.seed),
        Participation(
            training.clients_per_round,
            training.tracking_clients,
            None if type(select) is RandomSelection else select,
            energy_limits(config, network),
        ),
        config.lr_schedule.shares(training.rounds) if model.trains else unchanged,
        weights=model.sample_weights(training.weighting),
        chosen=config.assigner,
    )
