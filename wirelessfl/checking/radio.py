"""Contracts of fading models and of models of uploads that fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wirelessfl.checking.contract import INPUT, Contract, broken, copied, difference, unchanged
from wirelessfl.checking.runs import BASIC, CREATED, PICKLED
from wirelessfl.checking.subject import CLIENTS, Subject

ROOT = np.eye(2, dtype=np.complex64)
MANY, CLOSE = 4000, 0.08
"""Number of clients, and largest deviation of their mean power from 1: at least 5 standard errors
of powers with a standard deviation of 1.4, as in Nakagami fading with m = 0.5."""
SAME = "draws the same channels for equal streams"


def _fading_twice(subject: Subject) -> None:
    clients = np.arange(CLIENTS)
    one, two = (
        subject.made().build().draw(subject.stream, 3, clients, ROOT.copy()) for _ in range(2)
    )
    if difference(one, two) is not None:
        broken("draw returns other channels for equal streams and indices: draw from stream")


def _fading_alone(subject: Subject) -> None:
    fading, some = subject.made().build(), np.array([1, 4])
    whole = fading.draw(subject.stream, 3, np.arange(CLIENTS), ROOT.copy())
    if difference(whole[some], fading.draw(subject.stream, 3, some, ROOT.copy())) is not None:
        broken(
            "a client's channel depends on which other clients are drawn: use stream.normals or "
            "stream.uniforms, which draw per client"
        )


def _fading_input(subject: Subject) -> None:
    clients, root = np.arange(CLIENTS), ROOT.copy()
    subject.made().build().draw(subject.stream, 3, clients, root)
    unchanged(np.arange(CLIENTS), clients, "clients")
    unchanged(ROOT, root, "root")


def _mean_power(subject: Subject) -> None:
    h = subject.made().build().draw(subject.stream, 0, np.arange(MANY), ROOT.copy())
    power = float((np.abs(h.astype(np.complex128)) ** 2).mean())
    if abs(power - 1) > CLOSE:
        broken(f"the mean power per antenna is {power:.3g}: scale the channels to mean power 1")


def _failures_pure(subject: Subject) -> None:
    made, network = subject.made(), subject.network()
    draw = network.draw(subject.stream, 2)
    other = network.draw(subject.stream, 3)
    both = replace(draw, h=np.stack([draw.h, other.h]))
    snr = np.geomspace(0.01, 100, 2 * CLIENTS).reshape(2, CLIENTS)
    before = copied(snr)
    one, two = (made.probability(snr, both) for _ in range(2))
    unchanged(before, snr, "snr")
    if difference(one, two) is not None:
        broken("probability returns other values in a second call: it must not draw random numbers")
    if difference(one[0], made.probability(snr[:1], replace(draw, h=draw.h[None]))[0], 1e-9):
        broken("the probabilities of a block depend on other blocks: compute along the last axis")


FADING = (
    CREATED,
    PICKLED,
    Contract(INPUT, _fading_input, needs=(CREATED.name,)),
    Contract(SAME, _fading_twice, needs=(INPUT,)),
    Contract("draws each client on its own", _fading_alone, needs=(SAME,)),
    Contract("has mean power 1", _mean_power, needs=(CREATED.name,)),
    *BASIC,
)
FAILURES = (
    CREATED,
    PICKLED,
    Contract("gives the same probabilities twice", _failures_pure, needs=(CREATED.name,)),
    *BASIC,
)
