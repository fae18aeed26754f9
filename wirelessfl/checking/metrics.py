"""Contracts of a metric."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from wirelessfl.checking.contract import INPUT, Contract, broken, copied, difference, unchanged
from wirelessfl.checking.runs import BASIC, CREATED
from wirelessfl.checking.subject import CLIENTS, Subject
from wirelessfl.checking.trial_data import outputs_and_labels
from wirelessfl.losses.loss import Accuracy, is_binary
from wirelessfl.metrics import Measures, Metric, OwnMetric, Predicted, find_metric, label_shares

VALUE = "returns a number, or a list of numbers"
SAME = "gives the same value twice"


def _made(subject: Subject) -> Metric:
    return find_metric(subject.path)


def _tested(subject: Subject, metric: Metric) -> Predicted:
    """Random outputs and the labels of a few samples."""
    data = subject.data
    assert data is not None
    outputs, labels = outputs_and_labels(data, subject.stream)
    shares = None
    if metric.by_clients:
        samples = np.array_split(np.arange(len(data.train_labels)), CLIENTS)
        shares = label_shares(data.train_labels, samples, data.classes)
    kind: Accuracy | None = "classes" if labels.dtype == torch.int64 else None
    if kind is None and is_binary(data.train_labels):
        kind = "signs"
    return Predicted(outputs, labels, kind, data.classes, shares)


def _created(subject: Subject) -> None:
    _made(subject)
    subject.config()


def _value(subject: Subject) -> None:
    metric = _made(subject)
    tested = _tested(subject, metric)
    part = Measures((metric,), tested.accuracy, tested.classes, tested.shares)
    lengths = set()
    for count in (len(tested.labels), 1):
        found = part.of(tested.outputs[:count], tested.labels[:count])[metric.field]
        lengths.add(len(found) if isinstance(found, list) else None)
    if len(lengths) > 1:
        broken(
            "the number of values depends on the number of samples: return one number, or as many "
            "numbers for all models"
        )


def _input(subject: Subject) -> None:
    metric = _made(subject)
    tested = _tested(subject, metric)
    outputs, labels = tested.outputs.clone(), tested.labels.clone()
    before = copied([outputs, labels])
    if isinstance(metric, OwnMetric):
        metric.function(outputs, labels)
    else:
        metric.value(replace(tested, outputs=outputs, labels=labels))
    for name, one, two in zip(("outputs", "labels"), before, (outputs, labels), strict=True):
        unchanged(one, two, name)


def _twice(subject: Subject) -> None:
    metric = _made(subject)
    tested = _tested(subject, metric)
    if difference(metric.value(tested), metric.value(tested)) is not None:
        broken("a second call gives another value: draw no random numbers, and keep no state")


CONTRACTS = (
    Contract(CREATED.name, _created),
    Contract(VALUE, _value, needs=(CREATED.name,)),
    Contract(INPUT, _input, needs=(VALUE,)),
    Contract(SAME, _twice, needs=(INPUT,)),
    *BASIC,
)
