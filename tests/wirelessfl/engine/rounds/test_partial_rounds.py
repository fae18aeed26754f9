"""Partial participation: costs, memory, channel draws and the selection of clients."""

import tracemalloc
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
import torch

from channels import Network, Rayleigh, Stream
from tests.wirelessfl.small import model
from wirelessfl.air.participants import ConsecutiveClients, PresentClients, draw_participants
from wirelessfl.air.uplinks import Transmission
from wirelessfl.air.uplinks.aircomp import AirComp
from wirelessfl.engine.selection.selection import Participation
from wirelessfl.models.submodels import levels_of
from wirelessfl.runs.build import build
from wirelessfl.training.workers.shards import Shards


def network(sizes=(7, 5, 6), **changes):
    clients, dice = sum(sizes), np.random.default_rng(2)
    settings = {
        "cpu_hz": dice.uniform(1e9, 4e9, clients),
        "snr_db": dice.uniform(10, 40, clients),
        "path_gain_db": dice.uniform(-10, 10, clients),
        "transmit_power_w": dice.uniform(0.1, 0.2, clients),
        "antennas": 3,
    }
    return Network.from_snr(np.repeat(np.arange(len(sizes)), sizes), **(settings | changes))


CASES = {
    "cells": ("hfedavg", {}),
    "cells with masks": ("hist", {"mask_sizes": "optimized"}),
    "cells with trackers": ("hfedavg", {"local": "fadamgc", "tracking_clients": 4}),
    "a star": ("fedavg", {}),
    "a star with trackers": ("fadamgc", {"tracking_clients": 4}),
    "submodels": ("ra-fed", {"capacities": (1.0, 0.5, 0.2)}),
    "submodels in cells": ("hfedavg", {"local": "ra-fed", "capacities": (1.0, 0.5, 0.2)}),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("uplink", ["tdma", "ofdma", "aircomp", "fixed"])
@pytest.mark.parametrize("case", CASES)
def test_costs_do_not_depend_on_the_channels_of_other_clients(config, toy, case, uplink):
    """Costs are bit-identical to those computed with channels of all clients."""
    name, flags = CASES[case]
    star = name in ("fedavg", "fadamgc", "ra-fed")
    if uplink == "aircomp" and "tracking_clients" in flags:
        flags = {key: value for key, value in flags.items() if key != "tracking_clients"}
    flags = flags | {"uplink": uplink, "clients_per_round": 9}
    if not star and uplink != "fixed":
        flags |= {"coherence": "edge-round", "edge_rounds": 2}
    setup = build(
        config(name, network=True, downlink_mbps=3, **flags),
        data=toy,
        model=model((30,)),
        network=network((18,) if star else (7, 5, 6)),
    )
    planner, pricing = setup.planner, setup.planner.pricing
    some = PresentClients(np.arange(18) % 3 > 0)
    for number, present in enumerate((None, some, ConsecutiveClients(0, 6))):
        plan = planner.plan(number, present)
        blocks = len(plan.draws.h)
        indices = range(number * blocks, (number + 1) * blocks)
        whole = planner.network.draws(planner.stream.child("channel"), indices)
        assert plan.draws.h.shape == (blocks, len(plan.clients), 3)
        assert np.array_equal(plan.draws.h, whole.h[:, plan.clients])
        stream = planner.stream.child("round", number)
        who = draw_participants(planner.network, 9, planner.participation.tracking, stream, present)
        price = pricing.price(
            number, whole, who, plan.submodels, plan.client_submodels, planner.stream
        )
        if plan.client_submodels is not None:
            levels = levels_of(planner.model.neurons()).parameters
            by_level = pricing.client_seconds(plan.draws, who, levels)
            assert np.array_equal(pricing.client_seconds(whole, who, levels), by_level)
        assert np.array_equal(price.seconds, plan.price.seconds)
        for traffic in ("uplink_mib", "downlink_mib", "backhaul_mib", "joules"):
            assert getattr(price, traffic) == getattr(plan.price, traffic)
        attended = np.bincount(plan.node, minlength=planner.network.cells) > 0
        waits = plan.price.seconds > 0
        assert waits[attended].all()
        if plan.client_submodels is None:
            assert not waits[~attended].any()


@dataclass(frozen=True)
class Counted(Rayleigh):
    """Rayleigh fading that records the clients whose channels are drawn."""

    asked: tuple = ()

    def draw(self, stream, index, clients, root):
        self.asked[0].append(clients.tolist())
        return super().draw(stream, index, clients, root)


@pytest.mark.parametrize("uplink", ["tdma", "aircomp"])
def test_only_channels_of_participants_are_drawn(config, toy, uplink):
    """With partial participation, only the participants' channels are drawn."""
    settings = config("hfedavg", network=True, clients_per_round=9, rounds=3, uplink=uplink)
    asked = []
    made = network(fading=Counted(asked=(asked,)))
    setup = build(settings, data=toy, network=made)
    asked.clear()
    for number in range(3):
        plan = setup.planner.plan(number)
        setup.learner.learn(plan, setup.learner.server.cloud)
        assert asked == [plan.clients.tolist()] * len(plan.draws.h)
        asked.clear()
    full_round = replace(setup.planner, participation=Participation()).plan(0)
    assert asked == [list(range(18))] * len(full_round.draws.h)


def test_a_plan_needs_no_memory_for_other_clients(config, toy):
    """A plan with 20 of 10^5 clients uses less than one byte per client of the network."""
    cells = np.repeat(np.arange(2), 50_000)
    planner = build(config("hfedavg", cells=2), data=toy).planner
    links = replace(planner.links, network=Network.from_snr(cells, cpu_hz=1e9, snr_db=30.0))
    planner = replace(planner, links=links, participation=Participation(20))
    planner.plan(0)  # computes the network's cached values
    tracemalloc.start()
    try:
        plan = planner.plan(1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(plan.clients) == 20
    assert peak < 100_000


@pytest.mark.parametrize("options", [{}, {"csi_error": 0.05, "phase_error_deg": 5.0}])
def test_aircomp_uses_only_the_channels_of_the_senders(options):
    """Results are equal for channels of all clients, of the senders, and of a superset."""
    made, clients = network((4, 3, 4)), np.array([1, 2, 4, 6, 8, 10])
    node = made.cell_of[clients]
    whole = made.draw(Stream(5))
    sent = torch.from_numpy(np.random.default_rng(0).random((6, 40))).float()
    got = []
    for draw in (whole, whole.of(clients), whole.of(np.arange(1, 11))):
        air = Transmission(
            nodes=3,
            node=node,
            clients=clients,
            weights=1 / np.bincount(node)[node],
            each=frozenset(),
            units={},
            draw=draw,
            stream=Stream(6),
        )
        reception = AirComp(beamformer_starts=1, **options).receive(air)
        reception.add(slice(None), {"update": sent.clone()})
        reception.finish(Shards(), ["update"], torch.zeros(3, 40))
        got.append(reception.result().mean["update"])
    assert torch.equal(got[0], got[1])
    assert torch.equal(got[0], got[2])


def test_clients_that_leave_do_not_change_the_channels_of_others(config, toy):
    """After ``without``, AirComp receives the other clients over their original channels."""
    settings = config("hfedavg", network=True, clients_per_round=9, uplink="aircomp", csi_error=0.1)
    setup = build(settings, data=toy, network=network())
    plan = setup.planner.plan(0)
    fewer = plan.without(plan.clients[[0, 4]])
    setup.learner.learn(fewer, setup.learner.server.cloud)
    other = build(settings, data=toy, network=network())
    cut = replace(fewer, draws=plan.draws.of(fewer.clients))
    other.learner.learn(cut, other.learner.server.cloud)
    assert torch.equal(setup.learner.server.cloud["params"], other.learner.server.cloud["params"])


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("size", "asked", "tracking"), [(5, 2, 1), (6, 4, 2), (4, 4, 2)])
def test_every_set_of_clients_is_equally_likely(size, asked, tracking):
    """Over 1500 rounds, clients and trackers are uniform within four standard deviations."""
    made, counts = network((size,)), {}
    for t in range(1500):
        who = draw_participants(made, asked, tracking, Stream(t))
        key = tuple(who.clients.tolist()), tuple(who.clients[who.tracking].tolist())
        counts[key] = counts.get(key, 0) + 1
    sets = [
        (clients, trackers)
        for clients in combinations(range(size), asked)
        for trackers in combinations(clients, tracking)
    ]
    share = 1 / len(sets)
    assert counts.keys() == set(sets)
    for key in sets:
        assert abs(counts[key] / 1500 - share) < 4 * (share * (1 - share) / 1500) ** 0.5


def test_only_present_clients_are_drawn():
    """Cells have participants in proportion to their present clients."""
    made = network((6, 6, 6))
    present = np.isin(np.arange(18), [1, 2, 3, 5, 12, 13, 14, 17])
    seen = set()
    for t in range(200):
        who = draw_participants(made, 4, 2, Stream(t), PresentClients(present))
        assert present[who.clients].all()
        assert np.bincount(made.cell_of[who.clients], minlength=3).tolist() == [2, 0, 2]
        assert who.tracking.sum() == 2
        seen |= set(who.clients.tolist())
    assert seen == set(np.flatnonzero(present).tolist())
