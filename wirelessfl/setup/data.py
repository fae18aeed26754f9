"""The data set of a configuration, with its scaling and split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from channels import Network
from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.config.sections import DataSection, SessionsSection
from wirelessfl.data import Dataset, load_dataset
from wirelessfl.data.client_samples import ClientSamples
from wirelessfl.data.label_groups import LabelGroups, label_groups, split_groups
from wirelessfl.data.splits import split
from wirelessfl.data.validation import RemainingSamples, hold_out
from wirelessfl.errors import ConfigError


class Split(NamedTuple):
    """Who has which training samples.

    Args:
        client_samples: each client's.
        groups: of clients that are there in turn; None: no such groups.
        held_out: the validation samples, which no client has; None: none.
    """

    client_samples: ClientSamples
    groups: LabelGroups | None
    held_out: IntArray | None


@dataclass(frozen=True)
class Loaded:
    """Data sets and splits that several tasks share: equal settings, the same objects."""

    data: dict[Any, Dataset] = field(default_factory=dict)
    splits: dict[Any, tuple[ClientSamples, IntArray | None]] = field(default_factory=dict)

    def dataset(self, settings: DataSection) -> Dataset:
        """The data set that settings name.

        Raises:
            ConfigError: settings that do not go with it.
            DataError: it is absent or damaged.
        """
        key = (
            settings.dataset,
            settings.data_dir,
            settings.tokenizer,
            settings.max_length,
            settings.pixels,
        )
        if key not in self.data:
            found = load_dataset(
                settings.dataset,
                settings.data_dir,
                tokenizer=settings.tokenizer,
                max_length=settings.max_length,
            )
            self.data[key] = _scaled(found, settings.pixels)
        return self.data[key]

    def split(
        self,
        settings: DataSection,
        sessions: SessionsSection,
        data: Dataset,
        network: Network,
        stream: Stream,
    ) -> Split:
        """Each client's samples, those held out, and the groups of clients there in turn, if any.

        Raises:
            ConfigError: settings that do not go together.
            DataError: a split that cannot be made.
        """
        groups = _groups(sessions, data, network)
        wanted = settings.model_dump(exclude={"data_dir"})
        key = (tuple(sorted(wanted.items())), id(data))
        if key not in self.splits:
            held = _held_out(settings, data, stream.child("validation"))
            shared = sessions.shared_labels
            self.splits[key] = _dealt(settings, data, network, groups, shared, stream, held), held
        samples, held = self.splits[key]
        return Split(samples, groups, held)


def given_dataset(settings: DataSection, data: Dataset) -> Dataset:
    """A data set that was given as an object, on the scale that settings ask for.

    Raises:
        ConfigError: settings of texts, which are tokenised already, or of images where there are
            none.
    """
    for name in ("tokenizer", "max_length"):
        if getattr(settings, name) is not None:
            raise ConfigError(
                f"{name} is {getattr(settings, name)!r}, and the data set is given: it is "
                f"tokenised already. Leave {name} out."
            )
    return _scaled(data, settings.pixels)


def _groups(sessions: SessionsSection, data: Dataset, network: Network) -> LabelGroups | None:
    """Groups of clients that are there in turn; None where the settings name none."""
    if sessions.sessions is None or sessions.presence != "labels":
        return None
    return label_groups(
        data.classes,
        network.cell_of,
        overlap=sessions.overlap,
        unseen_labels=sessions.unseen_labels,
    )


def _held_out(settings: DataSection, data: Dataset, stream: Stream) -> IntArray | None:
    """The validation samples; None: there are none. Under a natural split, whole groups.

    Raises:
        DataError: no sample would be held out, or none would be left.
    """
    if not settings.validation_fraction:
        return None
    groups = data.groups if settings.split == "natural" else None
    return hold_out(len(data.train_labels), settings.validation_fraction, stream, groups)


def _dealt(
    settings: DataSection,
    data: Dataset,
    network: Network,
    groups: LabelGroups | None,
    shared_labels: Literal["split", "both"],
    stream: Stream,
    held: IntArray | None,
) -> ClientSamples:
    """Each client's samples, none of which is held out."""
    names = ("alpha", "shards", "min_samples", "samples_per_client", "reuse")
    options: dict[str, Any] = {name: getattr(settings, name) for name in names}
    options |= {"kind": settings.split, "cell_of": network.cell_of, "stream": stream}
    labels, natural, remaining = data.train_labels.numpy(), data.groups, None
    if held is not None:
        remaining = np.delete(np.arange(len(labels)), held)
        labels, natural = labels[remaining], None if natural is None else natural[remaining]
    dealt: Sequence[IntArray]
    if groups is not None:
        dealt = split_groups(labels, groups, shared_labels=shared_labels, **options)
    else:
        dealt = split(labels, network.clients, cells=network.cells, groups=natural, **options)
    samples = ClientSamples.of(dealt)
    return samples if remaining is None else RemainingSamples(samples, remaining)


def _scaled(data: Dataset, pixels: str) -> Dataset:
    """Images on another scale than [-1, 1].

    Raises:
        ConfigError: the data are not images in [-1, 1].
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
