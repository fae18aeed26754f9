"""Builds what plans a run's rounds: its network, its model and its planner, without executor."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from channels import Network
from channels.arrays import FloatArray
from channels.streams import Stream
from wirelessfl.config import Config
from wirelessfl.data.label_groups import LabelGroups
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.links import Links
from wirelessfl.rounds.planner import Planner
from wirelessfl.rounds.training_settings import TrainingSettings
from wirelessfl.selection import RandomSelection
from wirelessfl.selection.selection import Participation
from wirelessfl.setup.build_network import build_network
from wirelessfl.setup.computing import step_counts
from wirelessfl.setup.data import Loaded
from wirelessfl.setup.given_objects import NOTHING, GivenObjects
from wirelessfl.setup.step_costs import StepCost
from wirelessfl.setup.structure import Structure
from wirelessfl.setup.untrained import UntrainedModel, UntrainedStructure
from wirelessfl.training.step_counts import StepCounts


@dataclass(frozen=True, eq=False)
class Planned:
    """What plans a run, without its data.

    Args:
        planner: plans rounds.
        model: the model.
        groups: groups of clients that attend different sessions; None without groups.
        structure: the model's partition and neurons, found on demand.
    """

    planner: Planner
    model: UntrainedModel
    groups: LabelGroups | None
    structure: UntrainedStructure


def plan_without_data(
    config: Config, given: GivenObjects = NOTHING, like: Planned | None = None
) -> Planned:
    """Build what plans a run in rounds, without data, split and executor.

    Weights of means by numbers of samples are not known: clients have equal weights.

    Args:
        config: the settings, resolved, with the given objects marked.
        given: Python objects that replace settings.
        like: what was planned with settings that have the same model; None for a new one.

    Raises:
        ConfigError: settings conflict.
        DataError: the data set must be loaded, but is missing or damaged.
    """
    stream = Stream(config.run.seed)
    network = given.network or build_network(config.network, stream, config)
    model = UntrainedModel(config, given, stream) if like is None else like.model
    presence = config.presence
    groups = None if presence is None else presence.groups(model.classes, network.cell_of)
    layers = config.model.layers
    structure = UntrainedStructure(model, layers) if like is None else like.structure
    steps = _steps_without_training(config, given, network, stream)
    planner = make_planner(config, network, groups, structure, model.step_cost, None, steps)
    return Planned(planner, model, groups, structure)


def _steps_without_training(
    config: Config, given: GivenObjects, network: Network, stream: Stream
) -> StepCounts:
    """Number of local steps of each client, for which passes need the split of the data.

    Raises:
        ConfigError: settings conflict.
        DataError: the data set must be loaded, but is missing or damaged.
    """
    if config.training.local_epochs is None:
        return step_counts(config.training, None)
    loaded = Loaded()
    data = (
        loaded.dataset(config.dataset, config.data.data_dir) if given.data is None else given.data
    )
    samples, *_ = loaded.split(
        config.data, config, data, network, stream.child("split"), given.split
    )
    return step_counts(config.training, samples.sizes)


def make_planner(
    config: Config,
    network: Network,
    groups: LabelGroups | None,
    structure: Structure,
    step_cost: StepCost | None,
    weights: FloatArray | None,
    steps: StepCounts,
) -> Planner:
    """The planner of a run in rounds.

    Args:
        config: the settings.
        network: cells and clients.
        groups: groups of clients that attend different sessions; None without groups.
        structure: the model, and the neurons that submodels can omit.
        step_cost: counted cost of a full-model step; None for that of the network.
        weights: [clients], weights of the clients in their cell's mean; None for equal weights.
        steps: number of local steps of each client.

    Raises:
        ConfigError: a round has more clients than a session.
    """
    per_round = config.training.clients_per_round
    if groups is not None and per_round is not None:
        fewest = int(np.bincount(groups.group_of).min())
        if per_round > fewest:
            raise ConfigError(
                f"clients_per_round={per_round} exceeds the number of clients in a session, "
                f"{fewest} of {network.clients}: choose 1 to {fewest}."
            )
    if step_cost is not None:
        network = replace(network, cycles_per_step=step_cost.cycles)
    uplink, wanted, training = config.uplink, config.network, config.training
    compression, failures = config.compression, config.failures
    select = config.select
    down, back = wanted.downlink_mbps, wanted.backhaul_mbps
    return Planner(
        config.algorithm,
        Links(
            network,
            uplink,
            coherence=wanted.coherence or uplink.coherence,
            downlink_bps=1e6 * down if down else uplink.downlink_bps,
            backhaul_bps=back and 1e6 * back,
            failures=None if failures is None or failures.never else failures,
        ),
        structure.whole,
        TrainingSettings(
            local_steps=steps.common,
            client_steps=steps.each,
            edge_rounds=training.edge_rounds or 1,
            compression=compression.used,
            cutoff_seconds=training.cutoff_seconds,
        ),
        Stream(config.run.seed),
        Participation(
            training.clients_per_round,
            training.tracking_clients,
            None if type(select) is RandomSelection else select,
            training.client_joules,
        ),
        config.lr_schedule.shares(training.rounds),
        weights=weights,
        chosen=config.assigner,
    )
