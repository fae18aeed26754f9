"""Contracts of an algorithm: its client rule and its server rule, on small random tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wirelessfl.algorithms import Algorithm
from wirelessfl.checking.contract import (
    INPUT,
    Contract,
    NotTestedError,
    broken,
    copied,
    difference,
    unchanged,
)
from wirelessfl.checking.runs import (
    BASIC,
    CHUNKS,
    CREATED,
    EXECUTORS,
    PICKLED,
    TRAINS,
    TWICE,
    tested,
    variant,
)
from wirelessfl.checking.subject import Subject
from wirelessfl.training.cohort import Cohort, State
from wirelessfl.training.payloads import Received

NUMBER, SIZE, STEPS = 3, 24, 2
CLOSE = 1e-5


@dataclass(frozen=True)
class Trial:
    """Clients with random tensors, and the gradients of their local steps."""

    server: State
    cohort: Cohort
    grads: tuple[Tensor, ...]


SAME = "its rules give the same answer twice"


def trial(rule: Algorithm, size: int = SIZE) -> Trial:
    """Random tensors of a few clients; elements from ``size`` on are padding, which is 0."""
    source = torch.Generator().manual_seed(5)

    def normal(*shape: int) -> Tensor:
        values = torch.randn(*shape, generator=source)
        padding = torch.zeros(*shape[:-1], max(0, size - SIZE))
        return torch.cat([values, padding], -1)

    server = {name: value[None] for name, value in rule.initial(normal(SIZE)).items()}
    sent = rule.outgoing(server)
    kept = {name: 0.1 * normal(NUMBER, SIZE) for name in rule.client_state}
    flags = torch.ones(NUMBER, 1, dtype=torch.bool)
    cohort = Cohort(
        {name: value.expand(NUMBER, -1).clone() for name, value in sent.items()},
        STEPS,
        kept,
        flags,
        ~flags,
        rule.penalties,
    )
    return Trial(server, cohort, tuple(normal(NUMBER, SIZE) for _ in range(STEPS)))


def alone(trial: Trial, client: int) -> Trial:
    """One client of a trial."""
    row, cohort = slice(client, client + 1), trial.cohort
    one = Cohort(
        {name: value[row] for name, value in cohort.server.items()},
        cohort.local_steps,
        {name: value[row] for name, value in cohort.kept.items()},
        cohort.tracks[row],
        cohort.fresh[row],
        cohort.penalties,
    )
    return Trial(trial.server, one, tuple(grads[row] for grads in trial.grads))


def trained(rule: Algorithm, trial: Trial) -> tuple[State, State]:
    """The payloads and the client state after the local steps."""
    cohort = trial.cohort
    params, state = cohort.start.clone(), dict(rule.begin(cohort))
    for grads in trial.grads:
        params, state = rule.step(params, grads.clone(), state, cohort)
    kept = rule.keep(params, state, cohort)
    before = copied(kept)
    sent = rule.send(params, state, cohort)
    unchanged(before, kept, "what keep has returned, in send,")
    return {name: value.clone() for name, value in sent.items()}, copied(kept)


def merged(rule: Algorithm, trial: Trial, sent: State) -> State:
    """The server's state after a merge of these payloads."""
    number, size = next(iter(sent.values())).shape
    received = Received(
        {name: value.mean(0, keepdim=True) for name, value in sent.items()},
        {p.name: sent[p.name] for p in rule.payloads if p.each},
        np.arange(number),
        np.zeros(number, dtype=np.int64),
        local_steps=STEPS,
        share={name: torch.ones(1, 1) for name in sent},
        weights=[1 / number] * number,
        remembered={name: torch.zeros(number, size) for name in rule.remembers},
    )
    if rule.remembers:
        rule.remember(received)
    return rule.merge(dict(trial.server), received)


def _results(rule: Algorithm, trial: Trial) -> list[Any]:
    sent, kept = trained(rule, trial)
    return [sent, kept, merged(rule, trial, sent)]


def _pure(subject: Subject) -> None:
    rule = subject.made().rule
    found = difference(_results(rule, trial(rule)), _results(rule, trial(rule)))
    if found is not None:
        broken(
            "two calls with equal tensors give different results: draw no random numbers, and keep "
            "no state in the object"
        )


def _input(subject: Subject) -> None:
    rule = subject.made().rule
    given = trial(rule)
    parts = {"cohort.server": given.cohort.server, "cohort.kept": given.cohort.kept}
    before, server = copied(parts), copied(given.server)
    sent, _ = trained(rule, given)
    for name, value in parts.items():
        unchanged(before[name], value, name)
    received = copied(sent)
    merged(rule, given, sent)
    unchanged(server, given.server, "the server's state")
    unchanged(received, sent, "the received payloads")


def _independent(subject: Subject) -> None:
    rule = subject.made().rule
    given = trial(rule)
    together = trained(rule, given)
    for client in range(NUMBER):
        one = trained(rule, alone(given, client))
        for method, whole, part in zip(("send", "keep"), together, one, strict=True):
            rows = {name: value[client : client + 1] for name, value in whole.items()}
            found = difference(rows, part, CLOSE)
            if found is not None:
                broken(
                    f"{method} returns other values{found} for a client if others train with it: "
                    "compute along the last axis, one client per row"
                )


def _padded(subject: Subject) -> None:
    rule = subject.made().rule
    tight = _results(rule, trial(rule))
    wide = _results(rule, trial(rule, SIZE + 8))
    names = ("send returns", "keep returns", "merge returns")
    for name, one, two in zip(names, tight, wide, strict=True):
        cut = {key: value[..., :SIZE] for key, value in two.items()}
        found = difference(one, cut, CLOSE)
        if found is not None:
            broken(
                f"{name} other values{found} if a submodel is padded with zeros: do not average "
                "over coordinates"
            )


def _on_disk(subject: Subject) -> None:
    rule = subject.made().rule
    if not (rule.client_state or rule.remembers):
        raise NotTestedError("it keeps no client state")
    runs = [subject.run(subject.config(client_states=place)) for place in ("memory", "disk")]
    found = difference(dict(runs[0].params), dict(runs[1].params))
    if found is not None:
        broken(f"final parameters{found} differ if client states are on disk")


def _in_cells(subject: Subject) -> None:
    with tested("cells"):
        config = subject.config(algorithm="hist", local=subject.path, cells=2)
    subject.run(config)


CONTRACTS = (
    CREATED,
    PICKLED,
    Contract(INPUT, _input, needs=(CREATED.name,)),
    Contract(SAME, _pure, needs=(INPUT,)),
    Contract("treats each client on its own", _independent, needs=(SAME,)),
    Contract("ignores the padding of submodels", _padded, needs=(SAME,)),
    *BASIC,
    CHUNKS,
    EXECUTORS,
    Contract("works with client states on disk", _on_disk, needs=(TWICE,)),
    variant("trains sampled clients", clients_per_round=4),
    variant("works over OFDMA", uplink="ofdma"),
    variant("works over the air", uplink="aircomp"),
    variant("works under schedule buffered", schedule="buffered", requests=3, buffer=2),
    variant("works with sessions", sessions=2),
    Contract("works inside the cells of hist", _in_cells, needs=(TRAINS,)),
)
