"""Contracts of an uplink and of its access, on a small network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from channels import Access, ChannelDraw, Load, Service
from wirelessfl.checking.contract import (
    INPUT,
    Contract,
    NotTestedError,
    broken,
    copied,
    difference,
    unchanged,
)
from wirelessfl.checking.runs import BASIC, CHUNKS, CREATED, PICKLED, variant
from wirelessfl.checking.subject import CLIENTS, Subject
from wirelessfl.uplinks import Uplink
from wirelessfl.uplinks.checked import checked_access

CLOSE = 1e-9
ELEMENTS = np.array([3000.0, 1000.0, 2000.0, 500.0, 4000.0, 1500.0])
CYCLES = np.array([3e6, 1e6, 5e6, 2e6, 2e6, 4e6])
SAME = "serves a load the same way twice"


def _parts(subject: Subject) -> tuple[Uplink, Access, ChannelDraw, Load]:
    """The uplink, its access, and a load on a channel draw."""
    uplink = subject.made()
    draw = subject.network().draw(subject.stream.child("channel"), 3)
    return uplink, checked_access(uplink), draw, Load(CYCLES.copy(), ELEMENTS.copy())


def _of(service: Service) -> dict[str, np.ndarray]:
    shape = np.broadcast_shapes(service.seconds.shape, service.joules.shape)
    return {
        name: np.broadcast_to(getattr(service, name), shape)
        for name in ("seconds", "joules", "arrived")
    }


def _pure(subject: Subject) -> None:
    _, access, draw, load = _parts(subject)
    found = difference(_of(access.serve(load, draw)), _of(access.serve(load, draw)))
    if found is not None:
        broken(f"a second call of access.serve gives other values{found}: keep no state in it")


def _input(subject: Subject) -> None:
    _, access, draw, load = _parts(subject)
    before = copied([load.cycles, load.elements, draw.h, draw.network.cpu_hz])
    access.serve(load, draw)
    after = [load.cycles, load.elements, draw.h, draw.network.cpu_hz]
    for name, one, two in zip(
        ("load.cycles", "load.elements", "draw.h", "draw.network.cpu_hz"),
        before,
        after,
        strict=True,
    ):
        unchanged(one, two, name)


def _ready(subject: Subject) -> None:
    _, access, draw, load = _parts(subject)
    service = access.serve(load, draw)
    ready = np.broadcast_to(load.ready_seconds(draw.network), service.seconds.shape)
    early = (service.seconds < ready * (1 - CLOSE)) & service.arrived
    if early.any():
        client = int(np.argwhere(early)[0, -1])
        broken(
            f"the update of client {client} arrives after {service.seconds[..., client].min():g} "
            f"s, but the client trains for {ready[..., client].max():g} s: add "
            "load.ready_seconds(draw.network)"
        )


def _blocks(subject: Subject) -> None:
    _, access, draw, load = _parts(subject)
    other = draw.network.draw(subject.stream.child("channel"), 4)
    both = replace(draw, h=np.stack([draw.h, other.h]))
    together = _of(access.serve(load, both))
    for place, one in enumerate((draw, other)):
        alone = _of(access.serve(load, one))
        found = difference(alone, {k: v[place] for k, v in together.items()}, CLOSE)
        if found is not None:
            broken(
                f"access.serve returns other values{found} for a channel draw if several are "
                "served at once: compute along the last axis, [..., clients]"
            )


def _coupled(subject: Subject) -> None:
    _, access, draw, load = _parts(subject)
    before = np.broadcast_to(access.serve(load, draw).seconds, (CLIENTS,))
    for client in range(CLIENTS):
        elements = ELEMENTS.copy()
        elements[client] *= 3
        after = np.broadcast_to(access.serve(Load(CYCLES, elements), draw).seconds, (CLIENTS,))
        cell_of = draw.network.cell_of
        for mine in np.flatnonzero(np.arange(CLIENTS) != client):
            if difference(before[mine : mine + 1], after[mine : mine + 1], CLOSE) is None:
                continue
            if cell_of[mine] != cell_of[client]:
                broken(
                    f"the seconds of client {mine} depend on what client {client} of another cell "
                    "sends: compute them per cell"
                )
            if not access.coupled:
                broken(
                    f"the seconds of client {mine} depend on what client {client} of its cell "
                    "sends: set the class attribute coupled = True"
                )


def _more(subject: Subject) -> None:
    _, access, draw, load = _parts(subject)
    less = access.serve(load, draw).seconds
    more = access.serve(Load(CYCLES, 2 * ELEMENTS), draw).seconds
    faster = np.argwhere(more < less * (1 - CLOSE))
    if len(faster):
        broken(
            f"client {faster[0, -1]} needs fewer seconds for twice the elements: the sizes of "
            "submodels need seconds that do not fall"
        )


def _rates(subject: Subject) -> None:
    access = _parts(subject)[1]
    if not access.asynchronous:
        raise NotTestedError("its access has no rates, so it serves synchronous rounds only")
    snr = np.array([40.0, 3.0, 0.5])
    for number in (1, 2, 3):
        one, two = (access.rates(snr[:number].copy(), 1e6) for _ in range(2))
        if difference([one.bps, one.duty], [two.bps, two.duty]) is not None:
            broken("access.rates returns other rates in a second call: keep no state in the object")


CONTRACTS = (
    CREATED,
    PICKLED,
    Contract(INPUT, _input, needs=(CREATED.name,)),
    Contract(SAME, _pure, needs=(INPUT,)),
    Contract("lets no update arrive before its client has trained", _ready, needs=(SAME,)),
    Contract("serves several channel draws at once", _blocks, needs=(SAME,)),
    Contract("says whether clients of a cell wait for each other", _coupled, needs=(SAME,)),
    Contract("takes no less time for more elements", _more, needs=(SAME,)),
    Contract("gives rates at any time", _rates, needs=(CREATED.name,)),
    *BASIC,
    CHUNKS,
    variant("works with sampled clients", clients_per_round=4),
    variant("works in cells", algorithm="hist", cells=2),
    variant("works under schedule buffered", schedule="buffered", requests=3, buffer=2),
)
