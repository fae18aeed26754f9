"""Small data sets with labels of several kinds, and the one that fits a loss or a metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from channels.concurrency import ignored_warnings
from channels.streams import Stream
from wirelessfl.checking.subject import CLIENTS, Settings, small_data
from wirelessfl.data import Dataset
from wirelessfl.generators import seeded_generators
from wirelessfl.losses import Loss
from wirelessfl.metrics import Metric

STREAM = Stream(7, ("check",))
FIRST, TRIED = 5, 8
"""First one and number of the samples on which a loss or a metric is tried; not sorted."""
LOSSES: Mapping[str, Settings] = {
    "classes": {},
    "reals": {"loss": "mse"},
    "several reals": {"loss": "mse"},
    "several labels": {"loss": "binary-cross-entropy"},
}
"""Kinds of labels, with the settings of a run that computes a metric of them."""


def labelled() -> Iterator[tuple[str, Dataset]]:
    """A part of digits with each kind of labels, see ``LOSSES``; the labels follow the digit."""
    digits = small_data()
    yield "classes", digits
    train, test = digits.train_labels, digits.test_labels
    kinds: dict[str, Callable[[Tensor], Tensor]] = {
        "reals": lambda y: y.float() / 9,
        "several reals": lambda y: torch.stack([y.float() / 9, (y % 2).float()], 1),
        "several labels": lambda y: torch.stack([y % 2, y // 5, y % 3 // 2], 1).float(),
    }
    for kind, of in kinds.items():
        name = f"digits-with-{kind.replace(' ', '-')}"
        x, test_x = digits.train_inputs, digits.test_inputs
        yield kind, Dataset(name, x, of(train), test_x, of(test), groups=digits.groups)


def outputs_and_labels(data: Dataset, stream: Any) -> tuple[Tensor, Tensor]:
    """Random outputs of a model for a few samples, [batch, classes], and their labels."""
    normal = stream.generator(0).standard_normal((TRIED, data.classes))
    return torch.from_numpy(normal.astype(np.float32)), data.train_labels[
        FIRST : FIRST + TRIED
    ].clone()


def of_loss(given: Any, path: str, settings: Settings) -> tuple[Dataset, Settings]:
    """The first data set whose labels a loss takes, and no further settings."""
    function = given(**settings).values if _is(given, Loss) else given

    def fits(kind: str, data: Dataset) -> bool:
        outputs, labels = outputs_and_labels(data, STREAM)
        if _is(given, Loss) and not given(**settings).fits(data.train_labels):
            return False
        found = function(outputs, labels)
        # A loss of regression broadcasts outputs [n, 1] against labels [n], by mistake.
        return isinstance(found, Tensor) and tuple(found.shape) in ((), (TRIED,), labels.shape)

    return _first(fits)[1], {}


def of_metric(given: Any, path: str, settings: Settings) -> tuple[Dataset, Settings]:
    """The first data set that a metric takes, with the settings of a loss of its labels."""

    def fits(kind: str, data: Dataset) -> bool:
        outputs, labels = outputs_and_labels(data, STREAM)
        right = {"classes": "classes", "several labels": "signs"}.get(kind)
        if _is(given, Metric):
            return given().why_not(data.train_labels, right) is None
        given(outputs, labels)
        return True

    kind, data = _first(fits)
    return data, LOSSES[kind]


def of_network(network: Any) -> Dataset:
    """Data with a few samples for each client of a network."""
    data = small_data()
    count = len(data.train_labels)
    wanted = max(count, 4 * getattr(network, "clients", CLIENTS))
    rows = np.arange(wanted) % count
    return replace(
        data,
        train_inputs=data.train_inputs[rows],
        train_labels=data.train_labels[rows],
        groups=None,
    )


@contextmanager
def tried() -> Iterator[None]:
    """Try a function of the user with labels that may not fit it: warnings do not count."""
    with seeded_generators(STREAM), ignored_warnings():
        yield


def _is(given: Any, base: type) -> bool:
    return isinstance(given, type) and issubclass(given, base)


def _first(fits: Callable[[str, Dataset], bool]) -> tuple[str, Dataset]:
    """The first kind of labels that fits; the first of all if none does, whose error is shown."""
    found = list(labelled())
    for kind, data in found:
        try:
            with tried():
                if fits(kind, data):
                    return kind, data
        except Exception:  # users' code may raise anything for labels that it does not know
            continue
    return found[0]
