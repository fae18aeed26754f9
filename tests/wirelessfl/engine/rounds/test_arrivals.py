"""Training with updates that do not arrive, the ledger of clients, and what rows say of both."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from channels import Access, EqualSlots, Network
from tests.wirelessfl.small import model
from wirelessfl.air.uplinks import Uplink
from wirelessfl.air.uplinks.aircomp import AirComp
from wirelessfl.algorithms.algorithm import recounted
from wirelessfl.engine.server.ledger import Ledger
from wirelessfl.runs.build import build

CASES = {
    "a star": ("fedavg", {}),
    "cells": ("hfedavg", {"edge_rounds": 2}),
    "masks": ("hist", {"edge_rounds": 2}),
    "by samples": ("hfedavg", {"weighting": "samples"}),
    "tracking": ("fadamgc", {"tracking_clients": 3}),
    "control variates": ("scaffold", {}),
    "memory": ("ram-fed", {"capacities": (1.0, 0.5, 0.2)}),
    "moments": ("hfedavg", {"local": "fadamgc"}),
    "submodels": ("ra-fed", {"capacities": (1.0, 0.5, 0.2)}),
    "submodels in cells": ("hfedavg", {"local": "ra-fed", "capacities": (1.0, 0.5, 0.2)}),
    "momentum": ("fedavg-m", {}),
}


def network(star):
    cell_of = np.zeros(9, int) if star else np.repeat(np.arange(3), 3)
    return Network.from_snr(cell_of, cpu_hz=1e9, snr_db=20, antennas=3)


def setup_of(config, toy, name, **flags):
    star = name in ("fedavg", "fadamgc", "scaffold", "ra-fed", "ram-fed", "fedavg-m")
    made = config(name, network=True, local_steps=2, **flags)
    return build(made, data=toy, model=model((30,)), network=network(star))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("executor", ["stacked", "loop"])
def test_lost_updates_are_missing_in_the_means(config, toy, case, executor):
    """A round in which updates are lost gives the nodes' models of a round of the others."""
    name, flags = CASES[case]
    models = []
    for lost in (True, False):
        setup = setup_of(config, toy, name, executor=executor, **flags)
        plan, gone = setup.planner.plan(0), np.array([1, 4])
        arrivals = ~np.isin(plan.clients, gone)[None]
        plan = replace(plan, arrivals=arrivals) if lost else plan.without(gone)
        start = setup.learner.server.cloud
        models.append(setup.learner.train([(plan, start)])[0].nodes["params"])
        done = setup.learner.steps_done.of(gone)
        assert (done > 0).all() == lost  # a client does not know that its update is lost
    assert torch.equal(*models)
    assert not torch.equal(models[0], setup.learner.server.at_nodes(plan.submodels)["params"])


@pytest.mark.parametrize("name", ["scaffold", "fadamgc", "hfedavg"])
def test_the_servers_tracking_term_stays_the_mean_of_the_clients_terms(config, toy, name):
    """A client whose change is lost in an edge round keeps its term of before."""
    cells = {"local": "scaffold", "edge_rounds": 2} if name == "hfedavg" else {}
    setup = setup_of(config, toy, name, **cells)
    training, dice = setup.learner, np.random.default_rng(3)
    for number in range(3):
        plan = setup.planner.plan(number)
        arrivals = dice.random((1 + bool(cells), 9)) < 0.6
        assert not arrivals.all()
        training.learn(replace(plan, arrivals=arrivals), training.server.cloud)
    held = training.server.nodes or training.server.cloud
    for term in recounted(training.server.rule):
        own = [training.server.states.get(term, client) for client in range(9)]
        zero = torch.zeros_like(held[term][0]) if held[term].dim() > 1 else held[term] * 0
        own = torch.stack([zero if kept is None else kept for kept in own])
        means = own.reshape(3, 3, -1).mean(1) if cells else own.mean(0, keepdim=True)
        assert means.abs().max() > 1e-3
        assert torch.allclose(means, held[term].reshape(means.shape), atol=1e-6)


def test_each_edge_round_has_its_own_arrivals(config, toy):
    """Updates lost in the second edge round only: that of a run of both edge rounds by hand."""
    setup = setup_of(config, toy, "hfedavg", edge_rounds=2)
    plan = setup.planner.plan(0)
    arrivals = np.ones((2, 9), bool)
    arrivals[1, [0, 1, 3]] = False
    lossy = replace(plan, arrivals=arrivals)
    assert lossy.arrived(0) is None
    assert lossy.arrived(1).tolist() == arrivals[1].tolist()
    found = setup.learner.train([(lossy, setup.learner.server.cloud)])[0].nodes["params"]
    twin = setup_of(config, toy, "hfedavg", edge_rounds=2)
    by_hand = twin.learner.train([(replace(plan, arrivals=None), twin.learner.server.cloud)])[0]
    assert not torch.equal(found[0], by_hand.nodes["params"][0])
    assert not torch.equal(found[1], by_hand.nodes["params"][1])
    assert torch.equal(found[2], by_hand.nodes["params"][2])


def test_a_cell_without_an_update_keeps_its_model(config, toy):
    setup = setup_of(config, toy, "hfedavg", edge_rounds=2)
    plan = setup.planner.plan(0)
    arrivals = (plan.node != 1)[None]
    cloud = setup.learner.server.cloud
    trained = setup.learner.train([(replace(plan, arrivals=arrivals), cloud)])[0]
    assert torch.equal(trained.nodes["params"][1], cloud["params"])
    assert not torch.equal(trained.nodes["params"][0], cloud["params"])


def test_a_server_with_memory_keeps_its_model_without_an_update(config, toy):
    setup = setup_of(config, toy, "ram-fed", capacities=(1.0, 0.5, 0.2))
    plan, cloud = setup.planner.plan(0), setup.learner.server.cloud
    silent = replace(plan, arrivals=np.zeros((1, len(plan.clients)), dtype=np.bool_))
    trained = setup.learner.train([(silent, cloud)])[0]
    assert torch.equal(trained.nodes["params"][0], cloud["params"])
    assert not setup.learner.server.states.clients("memory")


@dataclass(frozen=True)
class Lossy(Uplink):
    """The update of client 5 never arrives."""

    @property
    def access(self) -> Access:
        return Without5()


class Without5(Access):
    def serve(self, load, draw):
        return replace(EqualSlots().serve(load, draw), arrived=draw.network.numbers != 5)


def test_rows_count_lost_and_silent_updates(config, toy):
    """Two rounds of two edge rounds: an access that loses client 5 loses 4 updates."""
    setup = setup_of(config, toy, "hfedavg", edge_rounds=2, uplink=f"{__name__}:Lossy")
    training = setup.learner
    ledger = setup.one_model.ledger
    for number in range(2):
        plan = setup.planner.plan(number, ledger=ledger)
        ledger.count(plan)
        training.learn(plan, training.server.cloud)
    assert (ledger.totals.lost, ledger.totals.silent) == (4, 0)
    heard = [0 if client == 5 else 2 for client in range(9)]
    assert ledger.heard.tolist() == heard
    assert ledger.chosen.tolist() == [2] * 9


@dataclass(frozen=True)
class Shy(AirComp):
    """Over the air, clients 0 to 2 are silent in the first edge round."""

    def silent(self, draws):
        found = np.zeros(draws.h.shape[:-1], bool)
        found[0, :3] = True
        return found


def test_silent_clients_spend_nothing_on_sending(config, toy):
    """Cell 0 is silent in the first of two edge rounds: bytes, joules and the model know it."""
    flags = {"edge_rounds": 2, "uplink": f"{__name__}:Shy", "beamformer_starts": 1}
    setup = setup_of(config, toy, "hfedavg", **flags)
    plan, size = setup.planner.plan(0), setup.planner.model.spec.size
    whole = setup_of(config, toy, "hfedavg", **(flags | {"uplink": "aircomp"})).planner.plan(0)
    assert plan.price.silent == 3
    assert plan.price.lost == 0
    assert plan.price.uplink_mib == pytest.approx((18 - 3) / 18 * whole.price.uplink_mib)
    assert plan.price.uplink_mib == pytest.approx(15 * size * 4 / 2**20 / 9)
    setup.one_model.ledger.count(plan)
    trained = setup.learner.train([(plan, setup.learner.server.cloud)])[0]
    assert setup.one_model.ledger.totals.silent == 3
    joules = setup.one_model.ledger.joules
    heat = 2 * setup.planner.settings.local_steps * 1e6 * 1e-28 * 1e9**2
    second = whole.price.served.service.joules[1, :3]
    np.testing.assert_allclose(joules[:3], heat / 2 + second, rtol=1e-9)
    np.testing.assert_allclose(joules[3:], whole.price.client_joules[3:], rtol=1e-9)
    assert not torch.equal(trained.nodes["params"][0], setup.learner.server.cloud["params"])


def test_joules_of_clients_sum_to_the_mean_of_rows(config, toy):
    setup = setup_of(config, toy, "hfedavg", clients_per_round=6, uplink="ofdma")
    ledger = setup.one_model.ledger
    for number in range(3):
        ledger.count(setup.planner.plan(number, ledger=ledger))
    assert ledger.joules.sum() / 9 == pytest.approx(ledger.totals.joules)
    assert ledger.joules.max() > ledger.totals.joules


def test_a_ledger_is_stored_and_restored():
    ledger = Ledger(6)
    ledger.add(np.array([1, 4]), np.array([0.5, 0.25]), np.array([True, False]))
    ledger.add(np.array([4]), np.array([1.0]), np.array([True]))
    twin = Ledger(6)
    twin.add(np.array([0, 1, 2]), np.ones(3), np.ones(3, bool))
    twin.restore(ledger.tensors())
    assert twin.joules.tolist() == [0, 0.5, 0, 0, 1.25, 0]
    assert twin.chosen.tolist() == [0, 1, 0, 0, 2, 0]
    assert twin.heard.tolist() == [0, 1, 0, 0, 2, 0]
    assert twin.rounds == 2
    assert len(ledger.tensors()["ledger.clients"]) == 2
