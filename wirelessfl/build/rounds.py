"""From a configuration to the objects of a run; everything that can be wrong is found here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from channels import Network
from channels.streams import Stream
from wirelessfl.build.basis import prepare
from wirelessfl.build.given import with_given
from wirelessfl.build.network import build_network
from wirelessfl.config import Config
from wirelessfl.config.sections import TrainingSection
from wirelessfl.data import Dataset
from wirelessfl.data.client_samples import part_sizes
from wirelessfl.data.dataset import widened
from wirelessfl.data.label_groups import LabelGroups
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.compression import make_compression
from wirelessfl.rounds.costs import Links
from wirelessfl.rounds.plan import Participation, Planner, WholeModel
from wirelessfl.rounds.settings import PADDING, TrainingSettings
from wirelessfl.rounds.step_sizes import Decay, constant
from wirelessfl.rounds.training import RoundTraining
from wirelessfl.server.client_states import make_states
from wirelessfl.server.server import Server
from wirelessfl.server.weights import Weights
from wirelessfl.submodels import NeuronMap, Partition, find_neurons, make_partition
from wirelessfl.submodels.partition import Scheme
from wirelessfl.training.objective import Objective
from wirelessfl.training.shards import Shards
from wirelessfl.training.trial import check_neurons, check_partition


@dataclass(frozen=True)
class Parts:
    """What a run is made of.

    Args:
        config: with device, executor, chunk and threads resolved.
        objective: model and loss.
        planner: plans rounds.
        training: trains them.
        test_inputs: test samples on the device.
        test_labels: their labels.
        data: the data set.
        groups: of clients that are there in turn; None: there are none.
        notes: what the user should know, a line each.
    """

    config: Config
    objective: Objective
    planner: Planner
    training: RoundTraining
    test_inputs: Tensor
    test_labels: Tensor
    data: Dataset
    groups: LabelGroups | None
    notes: list[str]


def build(
    config: Config,
    *,
    model: nn.Module | None = None,
    data: Dataset | None = None,
    network: Network | None = None,
    shards: Shards = Shards(),  # noqa: B008, frozen
) -> Parts:
    """The objects of the run that ``config`` describes, its first round planned as a check.

    Args:
        config: the settings.
        model: used instead of the configured one, with the weights it has.
        data: used instead of the configured data set.
        network: used instead of the configured network and the settings that describe it.
        shards: the processes that share the clients.

    The configuration that is stored marks what was given.

    Raises:
        ConfigError: settings that do not go together.
        DataError: no such data, or a split that cannot be made.
    """
    config = with_given(config, model=model, data=data, network=network)
    stream = Stream(config.run.seed)
    if network is None:
        network = build_network(config.network, stream)
    algorithm, uplink = config.build_algorithm(), config.build_uplink()
    training = config.training
    basis = prepare(config, network, algorithm, stream, model=model, data=data)
    config, objective = basis.config, basis.objective
    partitions: dict[Scheme, Partition] = {}

    def partition(scheme: Scheme) -> Partition:
        if scheme not in partitions:
            made = make_partition(basis.model, objective.spec, scheme, config.model.layers)
            inputs = widened(basis.data.train_inputs[:8].to(config.run.device))
            check_partition(objective, made, inputs)
            partitions[scheme] = made
        return partitions[scheme]

    @cache
    def neurons() -> NeuronMap:
        inputs = widened(basis.data.train_inputs[:8].to(config.run.device))
        return find_neurons(basis.model, objective.spec, inputs)

    compression = make_compression(
        training.compression, training.compression_keep, training.compression_bits
    )
    edge_rounds = training.edge_rounds or 1
    mbps = 1e6
    down, back = config.network.downlink_mbps, config.network.backhaul_mbps
    settings = TrainingSettings(training.local_steps, edge_rounds, compression=compression)
    planner = Planner(
        algorithm,
        Links(
            network,
            uplink,
            coherence=config.network.coherence or uplink.coherence,
            downlink_bps=down * mbps if down else uplink.downlink_bps,
            backhaul_bps=back and back * mbps,
        ),
        WholeModel(objective.spec, partition, neurons),
        settings,
        stream,
        Participation(training.clients_per_round, training.tracking_clients),
        _lr_share(training),
    )
    if config.model.layers is not None:
        partition("alternate")  # wrong names are refused, whether or not they are used
    if basis.groups is not None and training.clients_per_round is not None:
        fewest = int(np.bincount(basis.groups.group_of).min())
        if training.clients_per_round > fewest:
            raise ConfigError(
                f"clients_per_round is {training.clients_per_round}, and there are {fewest} of the "
                f"{network.clients} clients in a session: choose 1 to {fewest}."
            )
    there = None if basis.groups is None else np.asarray(basis.groups.group_of == 0)
    # Refuses impossible masks, sizes and links before anything is written.
    first = planner.plan(0, there)
    if algorithm.foresees and config.sessions.sessions is None:
        for number in range(1, training.rounds):
            planner.plan(number)
    padding = config.run.padding
    if first.client_submodels is not None:
        inputs = widened(basis.data.train_inputs[:8].to(config.run.device))
        alone = basis.executor.chunk == 1
        padding = _padding(padding, check_neurons(objective, neurons(), inputs), alone)
    device = torch.device(config.run.device)
    states = make_states(
        config.run.client_states,
        (*algorithm.client_state, *algorithm.remembers),
        objective.spec.size,
        network.clients,
        shards.count,
    )
    config = config.model_copy(
        update={
            "run": config.run.model_copy(update={"client_states": states.kind, "padding": padding})
        }
    )
    by_samples = training.weighting == "samples"
    samples = part_sizes(basis.parts).astype(np.float64) if by_samples else None
    server = Server(
        algorithm,
        uplink,
        Weights(network.cell_of, samples),
        states,
        basis.start.to(device),
    )
    settings = replace(settings, padding=padding or 0.0)
    return Parts(
        config,
        objective,
        planner,
        RoundTraining(server, basis.executor, settings, basis.parts, stream, shards),
        basis.data.test_inputs.to(device),
        basis.data.test_labels.to(device),
        basis.data,
        basis.groups,
        basis.notes,
    )


def _padding(asked: float | None, mixes: str | None, alone: bool) -> float:
    """Share of padding in what trains at once.

    Args:
        asked: by the settings.
        mixes: why submodels of different widths cannot train in one batch; None: they can.
        alone: whether clients train one by one, so that a batch of several gains nothing.

    Raises:
        ConfigError: padding is asked for, and cannot be.
    """
    if mixes is not None and asked:
        raise ConfigError(f"padding is {asked}: {mixes}. Choose 0.")
    if asked is not None:
        return asked
    return 0.0 if alone or mixes is not None else PADDING


def _lr_share(training: TrainingSection) -> Callable[[int], float]:
    """How the clients' step sizes go on from round to round."""
    if training.lr_schedule == "constant":
        return constant
    return Decay(training.rounds, training.lr_ratio, training.lr_power)
