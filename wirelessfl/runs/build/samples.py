"""Loads and splits the configured data set, and builds the model for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from channels import Network
from channels.arrays import IntArray
from channels.concurrency import SharedContext
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import described
from wirelessfl.config.choices import Choices
from wirelessfl.config.sections import DataSection
from wirelessfl.data import BUILT_IN, Dataset
from wirelessfl.data.choice import DatasetChoice
from wirelessfl.data.client_samples import ClientSamples, RemainingSamples, hold_out
from wirelessfl.data.files import ENVIRONMENT
from wirelessfl.data.label_groups import LabelGroups, split_groups
from wirelessfl.data.labels import class_remedy, is_one_class
from wirelessfl.data.partition import check_below
from wirelessfl.data.splits import Samples
from wirelessfl.models.choice import ModelChoice
from wirelessfl.models.shapes import Declared


class Dealt(NamedTuple):
    """Training samples per client, and validation samples.

    Args:
        client_samples: samples of each client.
        groups: groups of clients that attend different sessions; None without groups.
        held_out: indices of the validation samples, which no client has; None without validation.
    """

    client_samples: ClientSamples
    groups: LabelGroups | None
    held_out: IntArray | None


class KeptData(SharedContext):
    """Context in which the built-in data set that was read last is kept for the next runs."""

    def __init__(self) -> None:
        super().__init__(self._keep)
        self._last: tuple[Any, Dataset | None] = (None, None)

    @contextmanager
    def _keep(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._last = None, None

    def read(self, choice: DatasetChoice, data_dir: Path | None) -> Dataset:
        """The data set, read from its files unless it was read last."""
        if not self.inside or choice.name not in BUILT_IN:  # those of users may change
            return choice.load(data_dir)
        place = choice, data_dir, os.environ.get(ENVIRONMENT)
        last, data = self._last
        if data is None or last != place:
            data, self._last = None, (None, None)  # two would need the memory of both
            data = choice.load(data_dir)
            self._last = place, data
        return data


data_kept = KeptData()


@dataclass(frozen=True)
class Loaded:
    """Cache of data sets and splits: tasks with equal settings share the same objects."""

    data: dict[Any, Dataset] = field(default_factory=dict)
    splits: dict[Any, tuple[ClientSamples, IntArray | None]] = field(default_factory=dict)

    def dataset(self, choice: DatasetChoice, data_dir: Path | None) -> Dataset:
        """The configured data set, read from ``data_dir``.

        Raises:
            ConfigError: a setting conflicts with the data set.
            DataError: the data set is missing or damaged.
        """
        key = (choice, data_dir)
        if key not in self.data:
            self.data[key] = data_kept.read(choice, data_dir)
        return self.data[key]

    def split(
        self,
        settings: DataSection,
        choices: Choices,
        data: Dataset,
        network: Network,
        stream: Stream,
        lists: Sequence[IntArray] | None = None,
    ) -> Dealt:
        """The samples of each client, the validation samples if any, and the groups if any.

        Args:
            settings: settings of the data set.
            choices: the split, and the availability model.
            data: the data set.
            network: cells and clients.
            stream: randomness of the split.
            lists: the given samples of each client, ascending; None to split as configured.

        Raises:
            ConfigError: settings conflict.
            DataError: the data cannot be split as requested.
        """
        if lists is not None:
            check_below(lists, len(data.train_labels))
            return Dealt(ClientSamples.of(lists), None, None)
        choice, presence = choices.split, choices.presence
        _check_by_labels(choices, data)
        groups = None if presence is None else presence.groups(data.classes, network.cell_of)
        key = (choice, settings.validation_fraction, id(data))
        if key not in self.splits:
            held = _held_out(settings, data, stream.child("validation"))
            self.splits[key] = _dealt(choices, data, network, groups, stream, held), held
        samples, held = self.splits[key]
        return Dealt(samples, groups, held)


def _check_by_labels(choices: Choices, data: Dataset) -> None:
    """Refuse what sorts samples by their label if they have none or several."""
    if is_one_class(data.train_labels):
        return
    needs = (
        f"needs one class per sample, int64 labels [n], but those of data set {data.name!r} are "
        f"{described(data.train_labels)}{class_remedy(data.train_labels)}"
    )
    if choices.presence is not None and choices.presence.by_labels:
        raise ConfigError(
            f'presence "{choices.presence.title}" {needs} presence "arrivals" or "trace".'
        )
    if choices.split.by_labels:
        natural = "" if data.groups is None else ' or "natural"'
        raise ConfigError(
            f'split "{choices.split.title}" {needs} split "iid"{natural}, or give index lists as '
            "split=... to wirelessfl.run."
        )


def _held_out(settings: DataSection, data: Dataset, stream: Stream) -> IntArray | None:
    """Indices of the validation samples, or None; whole groups if the data set has groups."""
    fraction = settings.validation_fraction
    if not fraction:
        return None
    # Samples of a group may overlap, whichever clients they are dealt to.
    return hold_out(len(data.train_labels), fraction, stream, data.groups)


def _dealt(
    choices: Choices,
    data: Dataset,
    network: Network,
    groups: LabelGroups | None,
    stream: Stream,
    held: IntArray | None,
) -> ClientSamples:
    """The samples of each client, without the validation samples ``held``."""
    labels, natural, remaining = data.train_labels.numpy(), data.groups, None
    if held is not None:
        remaining = np.delete(np.arange(len(labels)), held)
        labels, natural = labels[remaining], None if natural is None else natural[remaining]
    dealt: Sequence[IntArray]
    if choices.presence is not None and groups is not None:
        dealt = split_groups(
            labels,
            groups,
            shared_labels=choices.presence.shared,
            kind=choices.split,
            cell_of=network.cell_of,
            stream=stream,
        )
    else:
        dealt = choices.split.deal(Samples(labels, natural), network.cell_of, stream)
    samples = ClientSamples.of(dealt)
    return samples if remaining is None else RemainingSamples(samples, remaining)


def configured_model(choice: ModelChoice, data: Dataset, stream: Stream) -> torch.nn.Module:
    """Build the configured model.

    Args:
        choice: the chosen model with its settings.
        data: data set of the model.
        stream: randomness of the initial weights.

    Raises:
        ConfigError: the model cannot be built, or its vocabulary lacks tokens of the data.
    """
    model = choice.build(
        data.input_shape,
        data.classes,
        stream=stream,
        pad_id=data.pad_id,
        vocabulary=data.vocabulary,
        words=data.words,
    )
    _check_tokens(model, data)
    return model


def _check_tokens(model: torch.nn.Module, data: Dataset) -> None:
    vocabulary = Declared.of(model).vocabulary
    if vocabulary is None or data.train_inputs.dtype == torch.float32:
        return
    for part, inputs in (("training", data.train_inputs), ("test", data.test_inputs)):
        low, high = (int(end) for end in inputs.aminmax())
        if low < 0 or high >= vocabulary:
            raise ConfigError(
                f"data set {data.name!r} has the token id {low if low < 0 else high} in its {part} "
                f"samples, but the model accepts 0 to {vocabulary - 1}. Choose the tokenizer of "
                "the pretrained model, or another model."
            )
