"""Contracts of a data partition."""

from __future__ import annotations

import numpy as np

from wirelessfl.checking.contract import INPUT, Contract, broken, copied, difference, unchanged
from wirelessfl.checking.runs import BASIC, CREATED, PICKLED
from wirelessfl.checking.subject import CLIENTS, Subject
from wirelessfl.data.splits.split import Samples

CELL_OF = np.arange(CLIENTS) * 2 // CLIENTS


def _samples(subject: Subject) -> Samples:
    assert subject.data is not None
    labels = subject.data.train_labels.numpy()
    return Samples(labels.copy(), np.arange(len(labels)) % CLIENTS)


def _pure(subject: Subject) -> None:
    made, samples = subject.made(), _samples(subject)
    one, two = (list(made.deal(samples, CELL_OF.copy(), subject.stream)) for _ in range(2))
    if difference([*map(np.asarray, one)], [*map(np.asarray, two)]) is not None:
        broken("deal returns different samples for equal streams: draw from stream.generator()")


def _input(subject: Subject) -> None:
    made, samples, cell_of = subject.made(), _samples(subject), CELL_OF.copy()
    before = copied({"labels": samples.labels, "groups": samples.groups})
    made.deal(samples, cell_of, subject.stream)
    unchanged(before, {"labels": samples.labels, "groups": samples.groups}, "samples")
    unchanged(CELL_OF, cell_of, "cell_of")


CONTRACTS = (
    CREATED,
    PICKLED,
    Contract(INPUT, _input, needs=(CREATED.name,)),
    Contract("deals the same samples for equal streams", _pure, needs=(INPUT,)),
    *BASIC,
)
