"""Contracts of models and of data sets."""

from __future__ import annotations

from wirelessfl.checking.contract import Contract, NotTestedError, broken, difference
from wirelessfl.checking.runs import BASIC, CHUNKS, CREATED, EXECUTORS, TRAINS, tested
from wirelessfl.checking.subject import Subject
from wirelessfl.data import Dataset, load_dataset
from wirelessfl.generators import seeded_generators


def _narrow(subject: Subject) -> None:
    with tested("submodels"):
        config = subject.config(algorithm="hist", cells=2)
    if not getattr(subject.given, "fully_connected", ()):
        raise NotTestedError("it declares no fully_connected layers")
    subject.run(config)


def _loaded(subject: Subject, seed: int) -> Dataset:
    with seeded_generators(subject.stream.child("global", seed)):
        return load_dataset(subject.path)


def _same_data(subject: Subject) -> None:
    one, two = (_loaded(subject, 0) for _ in range(2))
    for name in ("train_inputs", "train_labels", "test_inputs", "test_labels"):
        if difference(getattr(one, name), getattr(two, name)) is not None:
            broken(f"{name} differ between two calls: seed what it draws")


def _labels(subject: Subject) -> None:
    data = _loaded(subject, 0)
    for part, labels in (("training", data.train_labels), ("test", data.test_labels)):
        missing = sorted(set(range(data.classes)) - {*labels.tolist()})
        if missing:
            broken(
                f"no {part} sample has label {missing[0]}, although classes is {data.classes}: "
                "shuffle before you split, or lower classes"
            )


MODEL = (
    CREATED,
    *BASIC,
    CHUNKS,
    EXECUTORS,
    Contract("can be narrowed to submodels", _narrow, needs=(TRAINS,)),
)
DATASET = (
    Contract("returns the same samples twice", _same_data),
    Contract("has samples of every label", _labels),
    *(
        Contract(found.name, found.test, tuple(n for n in found.needs if n != CREATED.name))
        for found in BASIC
    ),
)
