"""What the training of one model stands on: data and their split, the model, an executor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from channels import Network
from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.algorithms import Algorithm
from wirelessfl.build.executors import build_executor, expect_workers
from wirelessfl.config import Config
from wirelessfl.config.sections import ModelSection
from wirelessfl.data import Dataset, load_dataset, text_options
from wirelessfl.data.label_groups import LabelGroups, label_groups, split_groups
from wirelessfl.data.pretrained import HUB_MODEL
from wirelessfl.data.splits import split
from wirelessfl.errors import ConfigError
from wirelessfl.models import build_model
from wirelessfl.training.executor import Executor
from wirelessfl.training.objective import Objective


@dataclass(frozen=True, eq=False)
class Basis:
    """What the training of one model stands on.

    Args:
        config: with device, executor, chunk and threads resolved.
        data: the data set.
        parts: each client's samples.
        groups: of clients that are there in turn, with sets of labels; None: there are none.
        model: the module.
        objective: model and loss.
        start: initial parameters [P].
        executor: where local updates are computed.
        notes: what the user should know, a line each.
    """

    config: Config
    data: Dataset
    parts: Sequence[IntArray]
    groups: LabelGroups | None
    model: nn.Module
    objective: Objective
    start: Tensor
    executor: Executor
    notes: list[str]


@dataclass(frozen=True)
class Loaded:
    """Data sets and splits that several tasks share: equal settings, the same objects."""

    data: dict[Any, Dataset] = field(default_factory=dict)
    parts: dict[Any, Sequence[IntArray]] = field(default_factory=dict)


def prepare(
    config: Config,
    network: Network,
    algorithm: Algorithm,
    stream: Stream,
    *,
    model: nn.Module | None = None,
    data: Dataset | None = None,
    own: Stream | None = None,
    together: int | None = None,
    updates: int | None = None,
    loaded: Loaded | None = None,
) -> Basis:
    """Load, split, build.

    Args:
        config: settings.
        network: cells and clients.
        algorithm: the client rule.
        stream: the run's, for the split.
        model: used instead of the configured one, with the weights it has.
        data: used instead of the configured data set.
        own: stream of initial weights and batches; None: the run's.
        together: clients that train at a time; None: those of a round.
        updates: that make a merge; None: one of each client that trains at a time.
        loaded: where tasks before this one have put their data.

    Raises:
        ConfigError: settings that do not go together.
        DataError: no such data, or a split that cannot be made.
    """
    own, loaded = own or stream, loaded or Loaded()
    cohort = together or config.training.clients_per_round or network.clients
    expect_workers(config, updates or cohort)
    config, data = configured_data(config, data, loaded)
    wanted = config.data.model_dump(exclude={"data_dir"})
    key = (tuple(sorted(wanted.items())), id(data))
    groups = _groups(config, data, network)
    if key not in loaded.parts:
        loaded.parts[key] = _dealt(config, data, network, groups, stream.child("split"))
    parts = loaded.parts[key]
    model = _model(config, model, data, own)
    objective = Objective.of(model)
    notes: list[str] = []
    start = objective.spec.from_module(model).cpu()
    if groups is not None and together is None:
        together = config.training.clients_per_round or int(np.bincount(groups.group_of).max())
    executor, config = build_executor(
        config, objective, algorithm, data, parts, notes, own, together, updates
    )
    return Basis(config, data, parts, groups, model, objective, start, executor, notes)


def _groups(config: Config, data: Dataset, network: Network) -> LabelGroups | None:
    """Groups of clients that are there in turn; None where the settings name none."""
    sessions = config.sessions
    if sessions.sessions is None or sessions.presence != "labels":
        return None
    return label_groups(
        data.classes,
        network.cell_of,
        overlap=sessions.overlap,
        unseen_labels=sessions.unseen_labels,
    )


def _dealt(
    config: Config, data: Dataset, network: Network, groups: LabelGroups | None, stream: Stream
) -> Sequence[IntArray]:
    """Each client's samples."""
    names = ("alpha", "shards", "min_samples", "samples_per_client", "reuse")
    options: dict[str, Any] = {name: getattr(config.data, name) for name in names}
    options |= {"kind": config.data.split, "cell_of": network.cell_of, "stream": stream}
    labels = data.train_labels.numpy()
    if groups is not None:
        shared = config.sessions.shared_labels
        return split_groups(labels, groups, shared_labels=shared, **options)
    return split(labels, network.clients, cells=network.cells, groups=data.groups, **options)


def configured_data(config: Config, data: Dataset | None, loaded: Loaded) -> tuple[Config, Dataset]:
    """The data set, and the configuration with what reading it takes."""
    if data is None:
        config = with_text_options(config)
        wanted = config.data
        key = (
            wanted.dataset,
            wanted.data_dir,
            wanted.tokenizer,
            wanted.max_length,
            wanted.pixels,
        )
        if key not in loaded.data:
            found = load_dataset(
                wanted.dataset,
                wanted.data_dir,
                tokenizer=wanted.tokenizer,
                max_length=wanted.max_length,
            )
            loaded.data[key] = _scaled(found, wanted.pixels)
        return config, loaded.data[key]
    for name in ("tokenizer", "max_length"):
        if getattr(config.data, name) is not None:
            raise ConfigError(
                f"{name} is {getattr(config.data, name)!r}, and the data set is given: it is "
                f"tokenised already. Leave {name} out."
            )
    return config, _scaled(data, config.data.pixels)


def configured_model(wanted: ModelSection, data: Dataset, stream: Stream) -> nn.Module:
    """The model that a configuration names, for these data."""
    return build_model(
        wanted.model,
        data.input_shape,
        data.classes,
        dropout=wanted.dropout,
        stream=stream,
        hidden=wanted.hidden,
        norm=wanted.norm,
        pretrained=wanted.pretrained,
        lora_rank=wanted.lora_rank,
        lora_alpha=wanted.lora_alpha,
        pad_id=data.pad_id,
    )


def _scaled(data: Dataset, pixels: str) -> Dataset:
    """Images on another scale than [-1, 1].

    Raises:
        ConfigError: the data are no such images.
    """
    if pixels == "signed":
        return data
    train, test = data.train_inputs, data.test_inputs
    if test.dtype != torch.float32 or test.dim() < 4 or bool((test.abs() > 1).any()):
        raise ConfigError(
            f'pixels is "{pixels}", and the inputs of {data.name!r} are no images in [-1, 1]. '
            "Leave it out."
        )
    if pixels == "unit":
        return replace(data, train_inputs=(train + 1) / 2, test_inputs=(test + 1) / 2)
    mean = train.mean((0, 2, 3), keepdim=True)
    spread = train.std((0, 2, 3), keepdim=True).clamp(min=1e-6)
    return replace(data, train_inputs=(train - mean) / spread, test_inputs=(test - mean) / spread)


def _model(config: Config, model: nn.Module | None, data: Dataset, stream: Stream) -> nn.Module:
    """The given model, or the configured one."""
    if model is None:
        model = configured_model(config.model, data, stream.child("initial weights"))
        _check_tokens(model, data)
        return model
    for name in ("dropout", "hidden", "norm", "pretrained", "lora_rank", "lora_alpha"):
        if value := getattr(config.model, name):
            raise ConfigError(
                f"{name} is {value}, and the model is given: it has its own layers. Leave "
                f"{name} out."
            )
    return model


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
