"""Contracts of compression methods and of step sizes over the rounds."""

from __future__ import annotations

import torch

from wirelessfl.checking.contract import INPUT, Contract, broken, copied, difference, unchanged
from wirelessfl.checking.runs import BASIC, CREATED, PICKLED
from wirelessfl.checking.subject import Subject
from wirelessfl.submodels import ParamSpec

SPEC = ParamSpec({"weight": (6, 4), "bias": (6,)})
SAME = "compresses the same way for equal streams"


def _flat() -> torch.Tensor:
    return torch.randn(2, SPEC.size, generator=torch.Generator().manual_seed(3))


def _compression_twice(subject: Subject) -> None:
    made = subject.made()
    one, two = (made.compress(_flat(), SPEC, subject.stream) for _ in range(2))
    if difference(one, two) is not None:
        broken("compress returns another model for equal streams: draw from the given stream")


def _compression_input(subject: Subject) -> None:
    flat = _flat()
    before = copied(flat)
    subject.made().compress(flat, SPEC, subject.stream)
    unchanged(before, flat, "flat")


def _compression_alone(subject: Subject) -> None:
    made = subject.made()
    both = made.compress(_flat(), SPEC, subject.stream)
    alone = made.compress(_flat()[:1], SPEC, subject.stream)
    if difference(both[:1], alone) is not None:
        broken("a node's model depends on the models of other nodes: compress each row on its own")


def _steps_order(subject: Subject) -> None:
    made, rounds = subject.made(), range(5)
    forward = made.shares(len(rounds))
    backward = made.shares(len(rounds))
    later = {number: backward(number) for number in reversed(rounds)}
    for number in rounds:
        if forward(number) != later[number]:
            broken(
                f"the factor of round {number} is {forward(number):g} or {later[number]:g}, "
                "depending on earlier calls: compute it from the round number alone"
            )


COMPRESSION = (
    CREATED,
    PICKLED,
    Contract(INPUT, _compression_input, needs=(CREATED.name,)),
    Contract(SAME, _compression_twice, needs=(INPUT,)),
    Contract("compresses each node on its own", _compression_alone, needs=(SAME,)),
    *BASIC,
)
STEP_SIZES = (
    CREATED,
    PICKLED,
    Contract("depends on the round number alone", _steps_order, needs=(CREATED.name,)),
    *BASIC,
)
