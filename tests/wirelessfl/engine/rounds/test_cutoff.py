"""Rounds that end at a cut-off: who is late, what it costs, and what is merged."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import wirelessfl
from channels import EqualBands, EqualSlots, Load, Network, ReadyOrder, Stream
from solvers import OptimalBands
from tests.wirelessfl.engine.rounds.test_arrivals import CASES, setup_of
from wirelessfl.air.delivery import cut_off, delivered, late_updates
from wirelessfl.air.failures import Failing
from wirelessfl.algorithms.algorithm import recounted
from wirelessfl.config import Config

ACCESSES = {
    "slots": EqualSlots(),
    "ready": ReadyOrder(),
    "equal": EqualBands(),
    "optimal": OptimalBands(),
}
LOAD = Load(np.array([1e7, 2e7, 4e7, 2e7, 1e7]), 5e4, start_seconds=0.01)


def network():
    cpu_hz = np.linspace(1e9, 2e9, 5)
    return Network.from_snr([0, 0, 0, 1, 1], cpu_hz=cpu_hz, snr_db=15.0, antennas=2)


@pytest.mark.parametrize("quantile", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("name", ACCESSES)
def test_a_cut_service(name, quantile):
    """Seconds are those until the cut-off; joules are those of the transmission on a fine clock."""
    access, net = ACCESSES[name], network()
    draws = net.draws(Stream(4), range(2))
    whole = access.serve(LOAD, draws)
    cutoff = float(np.quantile(whole.seconds, quantile)) * 0.99
    cut = cut_off(whole, LOAD, net, cutoff)
    assert np.array_equal(cut.seconds, np.minimum(whole.seconds, cutoff))
    late = late_updates(whole, LOAD, net, cutoff)
    assert np.array_equal(late, whole.seconds > cutoff)
    assert late.any()
    assert np.array_equal(cut.arrived, ~late)
    assert np.array_equal(cut.joules[~late], whole.joules[~late])
    heat = net.switched_capacitance * net.cpu_hz**2 * LOAD.cycles
    ready = 0.01 + LOAD.cycles / net.cpu_hz
    for block, client in np.argwhere(late):
        end, airtime = whole.seconds[block, client], whole.joules[block, client] - heat[client]
        airtime /= net.transmit_power_w[client]
        begin = end - airtime if name == "ready" else ready[client]
        clock = begin + (np.arange(20000) + 0.5) / 20000 * (end - begin)
        sent = airtime * (clock < cutoff).mean()
        joules = heat[client] + net.transmit_power_w[client] * sent
        assert cut.joules[block, client] == pytest.approx(joules, rel=1e-3)
        assert cut.transmissions[block, client] == pytest.approx(sent / airtime, abs=1e-3)


def test_nothing_is_cut_after_the_last_update():
    access, draws = EqualSlots(), network().draws(Stream(4), range(1))
    whole = access.serve(LOAD, draws)
    assert cut_off(whole, LOAD, draws.network, float(whole.seconds.max())) is whole


def test_clients_without_a_channel_or_without_bits():
    """An upload that never ends is late, and sends nothing; who has nothing to send is not late."""
    net = network()
    draws = net.draws(Stream(4), [0])
    draws.h[:, 1] = 0.0
    load = Load(2e7, np.array([5e4, 5e4, 0.0, 5e4, 5e4]))
    whole = EqualSlots().serve(load, draws)
    assert np.isinf(whole.seconds[0, 1])
    cut = cut_off(whole, load, net, 9.0)
    assert cut.arrived.tolist() == [[True, False, True, True, True]]
    assert cut.seconds[0, 1] == 9.0
    assert cut.joules[0, 1] == net.switched_capacitance[1] * net.cpu_hz[1] ** 2 * 2e7
    assert cut.transmissions.tolist() == [[1, 0, 1, 1, 1]]
    early = cut_off(whole, load, net, 1e-6)
    assert early.arrived.tolist() == [[False, False, True, False, False]]


@dataclass(frozen=True)
class Never(Failing):
    """All uploads of client 1 fail."""

    def probability(self, snr, draws):
        return np.where(np.arange(snr.shape[-1]) == 1, 1.0, 0.0) * np.ones(snr.shape)


@pytest.mark.parametrize("name", ["slots", "ready", "equal"])
def test_uploads_are_repeated_until_the_cut_off(name):
    """A client all of whose uploads fail sends without end; the others lose nothing in bands."""
    access, net = ACCESSES[name], network()
    draws = net.draws(Stream(4), [0])
    once = access.serve(LOAD, draws)
    cutoff = 5 * float(once.seconds.max())
    whole = delivered(access, LOAD, draws, Never(on_failure="repeat"), 3, Stream(1), cutoff)
    cut = cut_off(whole, LOAD, net, cutoff)
    assert np.isfinite(whole.joules).all()
    assert not cut.arrived[:, 1].any()
    assert (cut.seconds[:, 1] == cutoff).all()
    if name == "equal":
        assert cut.arrived.sum() == 3 * 4
        heat = (net.switched_capacitance * net.cpu_hz**2 * LOAD.cycles)[1]
        ready = 0.01 + (LOAD.cycles / net.cpu_hz)[1]
        expected = heat + net.transmit_power_w[1] * (cutoff - ready)
        np.testing.assert_allclose(cut.joules[:, 1], expected, rtol=1e-9)
        times = (cutoff - ready) / (once.seconds[0, 1] - ready)
        np.testing.assert_allclose(cut.transmissions[:, 1], times, rtol=1e-9)


def cutoff_between(setup, share=0.5):
    """A cut-off that some updates of the first edge round meet, and others miss."""
    seconds = np.sort(setup.planner.plan(0).price.served.service.seconds, axis=None)
    place = int(share * (len(seconds) - 1))
    return float(seconds[place] + seconds[place + 1]) / 2


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("case", CASES)
def test_a_round_with_late_updates_equals_a_round_of_the_others(config, toy, case):
    """Models and client states of the others are the same; a late client keeps its own terms."""
    name, flags = CASES[case]
    cutoff = cutoff_between(setup_of(config, toy, name, **flags))
    setup = setup_of(config, toy, name, **flags, cutoff_seconds=cutoff)
    plan = setup.planner.plan(0)
    late = ~plan.arrivals.any(0)
    assert 0 < late.sum() < 9
    twin = setup_of(config, toy, name, **flags)
    alone = replace(plan, arrivals=None).without(plan.clients[late])
    cloud = setup.learner.server.cloud
    setup.one_model.ledger.count(plan)
    found = setup.learner.train([(plan, cloud)])[0].nodes["params"]
    assert torch.equal(found, twin.learner.train([(alone, cloud)])[0].nodes["params"])
    assert setup.one_model.ledger.totals.late == late.sum() * setup.planner.settings.edge_rounds
    assert setup.one_model.ledger.totals.lost == 0
    assert setup.one_model.ledger.heard[plan.clients].tolist() == (~late).tolist()
    for term in recounted(setup.learner.server.rule):
        held = [setup.learner.server.states.get(term, client) for client in np.flatnonzero(late)]
        assert all(kept is None or not kept.any() for kept in held)


def test_without_an_update_the_model_stays(config, toy):
    setup = setup_of(config, toy, "scaffold", cutoff_seconds=1e-6)
    training, before = setup.learner, setup.learner.server.cloud["params"].clone()
    totals = setup.one_model.ledger.totals
    (note,) = [note for note in setup.notes if "cutoff" in note]
    first = setup_of(config, toy, "scaffold").planner.plan(0).price.served.service.seconds.min()
    assert note.startswith("cutoff_seconds=1e-06: no update arrives in round 1")
    assert f"{first:.4g} s" in note
    for number in range(2):
        plan = setup.planner.plan(number)
        totals.add(plan)
        training.learn(plan, training.server.cloud)
    assert torch.equal(training.server.cloud["params"], before)
    assert totals.row()["late"] == 18
    assert totals.uplink_mib == 0


RUNS = {
    "star": ("fedavg", {"uplink": "ofdma", "allocation": "optimal"}),
    "in turns": ("scaffold", {"order": "ready"}),
    "cells": ("hfedavg", {"edge_rounds": 2, "coherence": "edge-round"}),
    "masks": ("hist", {"mask_sizes": "optimized", "edge_rounds": 2}),
    "failures": ("hfedavg", {"uplink": "ofdma", "failures": "waterfall", "edge_rounds": 2}),
    "asynchronous cells": ("hfedavg", {"schedule": "buffered", "edge_rounds": 2}),
    "sessions": ("fedavg", {"sessions": 2, "warm_start": "proposed", "split": "iid"}),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", RUNS)
def test_runs_and_prices_agree(config, toy, name):
    """No round outlasts the cut-offs of its edge rounds; with a long cut-off no update is late."""
    algorithm, flags = RUNS[name]
    flags = {"rounds": 2, "path_gain_db": (-20.0, 10.0), "eval_every": 1, **flags}
    whole = config(algorithm, **flags)
    prices = wirelessfl.price(whole, data=toy)
    edge_rounds = whole.training.edge_rounds
    cutoff = 0.6 * float(prices.node_seconds[0].max()) / edge_rounds
    cut = config(algorithm, **flags, cutoff_seconds=cutoff)
    costs, result = wirelessfl.price(cut, data=toy), wirelessfl.run(cut, data=toy)
    names = ("sim_seconds", "joules", "joules_max", "late", "lost", "uplink_mib", "downlink_mib")
    assert len(costs.rows) >= 3
    for planned, row in zip(costs.rows, result.rows, strict=True):
        assert {n: planned[n] for n in names} == {n: row[n] for n in names}
    assert costs.rows[-1]["late"] > 0
    assert np.nanmax(costs.node_seconds) <= cutoff * edge_rounds * (1 + 1e-12)
    assert costs.joules.sum() < prices.joules.sum()
    assert costs.uplink_mib.sum() < prices.uplink_mib.sum()
    assert np.array_equal(costs.downlink_mib, prices.downlink_mib) or name.endswith("cells")
    long = wirelessfl.price(config(algorithm, **flags, cutoff_seconds=1e3), data=toy)
    assert [row | {"late": 0} for row in prices.rows] == long.rows


def test_rows_without_a_cut_off_count_nothing(toy, tmp_path):
    settings = Config.from_flags("fedavg", clients=6, rounds=1, out=tmp_path / "run")
    assert all("late" not in row for row in wirelessfl.run(settings, data=toy).rows)
