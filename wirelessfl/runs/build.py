"""From a configuration to the objects of a run; everything that can be wrong is found here."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from channels import Network
from channels.streams import Stream
from wirelessfl.config import Config
from wirelessfl.data import Dataset, load_dataset, text_options
from wirelessfl.data.dataset import widened
from wirelessfl.data.splits import split
from wirelessfl.errors import ConfigError
from wirelessfl.models import build_model
from wirelessfl.pretrained import HUB_MODEL
from wirelessfl.runs.executors import build_executor
from wirelessfl.runs.network import build_network
from wirelessfl.simulation.client_states import make_states
from wirelessfl.simulation.participants import check_participation
from wirelessfl.simulation.plan import Links, Planner
from wirelessfl.simulation.shards import Shards
from wirelessfl.simulation.world import TrainingSettings, World
from wirelessfl.submodels import Partition, make_partition
from wirelessfl.submodels.partition import Scheme
from wirelessfl.training.task import Task, check_partition


@dataclass(frozen=True)
class Parts:
    """What a run is made of.

    Args:
        config: with device, executor, chunk and threads resolved.
        task: model and loss.
        planner: plans rounds.
        world: trains them.
        test_inputs: test samples on the device.
        test_labels: their labels.
        data: the data set.
        notes: what the user should know, a line each.
    """

    config: Config
    task: Task
    planner: Planner
    world: World
    test_inputs: Tensor
    test_labels: Tensor
    data: Dataset
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
        network: used instead of the configured network; sets cells and clients.
        shards: the processes that share the clients.

    The configuration that is stored names the given data set and model.

    Raises:
        ConfigError: settings that do not go together.
        DataError: no such data, or a split that cannot be made.
    """
    stream = Stream(config.run.seed)
    if network is None:
        network = build_network(config.network, stream)
    else:
        sizes = {"cells": network.cells, "clients": network.clients}
        config = config.model_copy(update={"network": config.network.model_copy(update=sizes)})
    algorithm, uplink = config.build_algorithm(), config.build_uplink()
    training = config.training
    check_participation(
        algorithm,
        network.clients,
        network.cells,
        training.clients_per_round,
        training.tracking_clients,
    )
    if algorithm.topology == "star" and network.cells > 1:
        raise ConfigError(
            f"algorithm {algorithm.name!r} is a star, and the network has {network.cells} cells."
        )
    if data is None:
        config = with_text_options(config)
        data = load_dataset(
            config.data.dataset,
            config.data.data_dir,
            tokenizer=config.data.tokenizer,
            max_length=config.data.max_length,
        )
    else:
        for name in ("tokenizer", "max_length"):
            if getattr(config.data, name) is not None:
                raise ConfigError(
                    f"{name} is {getattr(config.data, name)!r}, and the data set is given: it is "
                    f"tokenised already. Leave {name} out."
                )
        named = config.data.model_copy(update={"dataset": data.name})
        config = config.model_copy(update={"data": named})
    parts = split(
        data.train_labels.numpy(),
        network.clients,
        kind=config.data.split,
        cells=network.cells,
        cell_of=network.cell_of,
        alpha=config.data.alpha,
        shards=config.data.shards,
        min_samples=config.data.min_samples,
        groups=data.groups,
        samples_per_client=config.data.samples_per_client,
        reuse=config.data.reuse,
        stream=stream.child("split"),
    )
    if model is None:
        model = build_model(
            config.model.model,
            data.input_shape,
            data.classes,
            dropout=config.model.dropout,
            stream=stream.child("initial weights"),
            hidden=config.model.hidden,
            norm=config.model.norm,
            pretrained=config.model.pretrained,
            lora_rank=config.model.lora_rank,
            lora_alpha=config.model.lora_alpha,
            pad_id=data.pad_id,
        )
        _check_tokens(model, data)
    else:
        for name in ("dropout", "norm", "pretrained", "lora_rank", "lora_alpha"):
            if value := getattr(config.model, name):
                raise ConfigError(
                    f"{name} is {value}, and the model is given: it has its own layers. Leave "
                    f"{name} out."
                )
        named_model = config.model.model_copy(update={"model": type(model).__name__})
        config = config.model_copy(update={"model": named_model})
    task = Task.of(model)
    notes: list[str] = []
    start = task.spec.from_module(model).cpu()
    executor, config = build_executor(config, task, algorithm, data, parts, notes)
    partitions: dict[Scheme, Partition] = {}

    def partition(scheme: Scheme) -> Partition:
        if scheme not in partitions:
            chain = config.model.layers
            names = [name.strip() for name in chain.split(",")] if chain else None
            made = make_partition(model, task.spec, scheme, names)
            check_partition(task, made, widened(data.train_inputs[:8].to(config.run.device)))
            partitions[scheme] = made
        return partitions[scheme]

    edge_rounds = training.edge_rounds or 1
    mbps = 1e6
    down, back = config.network.downlink_mbps, config.network.backhaul_mbps
    planner = Planner(
        algorithm=algorithm,
        network=network,
        uplink=uplink,
        links=Links(down * mbps if down else uplink.downlink_bps, back and back * mbps),
        spec=task.spec,
        make_partition=partition,
        local_steps=training.local_steps,
        edge_rounds=edge_rounds,
        coherence=config.network.coherence or uplink.coherence,
        stream=stream,
        per_round=training.clients_per_round,
        tracking=training.tracking_clients,
    )
    if config.model.layers is not None:
        partition("alternate")  # wrong names are refused, whether or not they are used
    planner.plan(0)  # refuses impossible masks, sizes and links before anything is written
    device = torch.device(config.run.device)
    states = make_states(
        config.run.client_states,
        algorithm.client_state,
        task.spec.size,
        network.clients,
        shards.count,
    )
    config = config.model_copy(
        update={"run": config.run.model_copy(update={"client_states": states.kind})}
    )
    world = World(
        algorithm,
        uplink,
        executor,
        TrainingSettings(
            local_steps=training.local_steps,
            edge_rounds=edge_rounds,
            weight_by_samples=training.weighting == "samples",
        ),
        parts,
        start.to(device),
        network.cell_of,
        stream,
        states,
        shards,
    )
    return Parts(
        config,
        task,
        planner,
        world,
        data.test_inputs.to(device),
        data.test_labels.to(device),
        data,
        notes,
    )


def with_text_options(config: Config) -> Config:
    """The configuration with tokenizer and length filled in, where the data set takes them.

    What is stored then says what was read, whatever the defaults of later are.
    """
    options = text_options(config.data.dataset)
    if "tokenizer" in options:
        options["tokenizer"] = config.model.pretrained or options["tokenizer"] or HUB_MODEL
    update = {
        option: default
        for option, default in options.items()
        if getattr(config.data, option) is None and default is not None
    }
    return config.model_copy(update={"data": config.data.model_copy(update=update)})


def _check_tokens(model: nn.Module, data: Dataset) -> None:
    """Refuse token ids that a model does not know, if it says which it knows.

    Raises:
        ConfigError: there is one.
    """
    vocabulary = getattr(model, "vocabulary", None)
    if not isinstance(vocabulary, int) or data.train_inputs.dtype == torch.float32:
        return
    for part, inputs in (("training", data.train_inputs), ("test", data.test_inputs)):
        low, high = (int(end) for end in inputs.aminmax())
        if low < 0 or high >= vocabulary:
            raise ConfigError(
                f"data set {data.name!r} has the token id {low if low < 0 else high} in its {part} "
                f"samples, and the model knows 0 to {vocabulary - 1}. Choose the tokenizer that "
                "belongs to the pretrained model, or another model."
            )
