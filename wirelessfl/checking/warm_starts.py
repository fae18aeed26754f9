"""Contracts of warm starts."""

from __future__ import annotations

import torch

from wirelessfl.checking.contract import INPUT, Contract, broken, copied, difference, unchanged
from wirelessfl.checking.runs import BASIC, CREATED, PICKLED
from wirelessfl.checking.subject import Subject
from wirelessfl.submodels import ParamSpec
from wirelessfl.warm_starts.warm_start import Opening, Past

SPEC = ParamSpec({"weight": (4, 3), "bias": (4,)})


def _opening() -> Opening:
    def model(number: int) -> torch.Tensor:
        return torch.randn(SPEC.size, generator=torch.Generator().manual_seed(number))

    past = Past((0, 1), (model(1), model(2)), (model(3), model(4)), model(5))
    return Opening(2, past, model(2), model(6), SPEC, lambda number: model(10 + number))


def _twice(subject: Subject) -> None:
    made = subject.made()
    one, two = (made.initial(_opening()).params for _ in range(2))
    if difference(one, two) is not None:
        broken("initial returns another model in a second call: draw by opening.draw alone")


def _input(subject: Subject) -> None:
    opening = _opening()
    before = copied([*opening.past.models, *opening.past.gradients, opening.latest])
    subject.made().initial(opening)
    after = [*opening.past.models, *opening.past.gradients, opening.latest]
    unchanged(before, after, "the tensors of opening")


CONTRACTS = (
    CREATED,
    PICKLED,
    Contract(INPUT, _input, needs=(CREATED.name,)),
    Contract("gives the same initial model twice", _twice, needs=(INPUT,)),
    *BASIC,
)
