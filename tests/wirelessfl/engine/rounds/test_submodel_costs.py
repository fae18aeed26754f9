"""Costs of rounds with client submodels by hand; widths for a deadline or minimum latency."""

import math

import numpy as np
import pytest

import wirelessfl
from channels import Stream
from solvers import fastest_widths
from wirelessfl.air.participants import Participants
from wirelessfl.base.errors import ConfigError
from wirelessfl.models import FCNN
from wirelessfl.models.submodels import coverage, levels_of
from wirelessfl.runs.build import build

P = 12 * 30 + 30 + 4 * 30 + 4  # 30 hidden neurons: 17 parameters each, and 4 shared
CYCLES, WATT = 1e6, 0.1  # cycles per step of the full model; transmit power


def model():
    return FCNN((12,), 4, hidden=(30,))


@pytest.fixture
def make(config, toy):
    """Factory of training setups."""

    def made(name="ra-fed", **flags):
        if "budget" not in flags:
            flags = {"capacities": (1.0, 0.5, 0.2)} | flags
        return build(config(name, local_steps=7, **flags), data=toy, model=model())

    return made


def client_seconds(setup, plan, block, client, length, *, uplink, senders, down=0.0):
    """Seconds of one client with ``length`` parameters by (17), in scalar Python."""
    network = setup.planner.network
    h = plan.draws.of([client]).h[block, 0].astype(complex)
    gain = float((np.abs(h) ** 2).sum())
    snr = 10 ** (network.snr_db[client] / 10)
    if uplink == "fixed":
        upload = 32 * length / 10e6
    elif uplink == "tdma":
        upload = senders * 32 * length / (9e6 * np.log2(1 + snr * gain))
    else:
        upload = 32 * length / (9e6 / senders * np.log2(1 + senders * snr * gain))
    return 7 * CYCLES / network.cpu_hz[client] * length / P + upload + down * length


def lengths_of(plan):
    """Number of parameters |p_n| by client, from its number of neurons."""
    held = zip(plan.clients.tolist(), plan.client_submodels.chosen, strict=True)
    return {client: 17 * len(own[0]) + 4 for client, own in held}


@pytest.mark.parametrize("uplink", ["tdma", "ofdma"])
def test_seconds_bytes_and_joules_by_hand(make, uplink):
    """Costs use the size |p_n| of each participant; bytes and joules are means over all clients."""
    setup = make(uplink=uplink, clients_per_round=4)
    network = setup.planner.network
    for number in range(3):
        plan = setup.planner.plan(number)
        lengths = lengths_of(plan)
        assert set(lengths.values()) <= {17 * n + 4 for n in (30, 15, 6)}
        assert plan.client_submodels.lengths.tolist() == list(lengths.values())
        seconds, joules = [], 0.0
        for client, length in lengths.items():
            own = client_seconds(setup, plan, 0, client, length, uplink=uplink, senders=4)
            seconds.append(own)
            work = 7 * CYCLES * length / P / network.cpu_hz[client]
            on_air = (own - work) / (4 if uplink == "tdma" else 1)
            joules += 1e-28 * network.cpu_hz[client] ** 2 * 7 * CYCLES * length / P + WATT * on_air
        assert plan.price.seconds == pytest.approx([max(seconds)], rel=1e-5)
        mib = 4 * sum(lengths.values()) / 6 / 2**20
        assert plan.price.uplink_mib == pytest.approx(mib)
        assert plan.price.downlink_mib == pytest.approx(mib)
        assert plan.price.backhaul_mib == 0
        assert plan.price.joules == pytest.approx(joules / 6, rel=1e-5)


def test_rows_accumulate_the_costs_of_rounds(config, toy):
    settings = config("ra-fed", capacities=(1.0, 0.2), clients_per_round=4)
    setup = build(settings, data=toy, model=model())
    rows = wirelessfl.run(settings, data=toy, model=model()).rows
    plans = [setup.planner.plan(t) for t in range(3)]
    mib = sum(4 * sum(lengths_of(plan).values()) / 6 / 2**20 for plan in plans)
    assert rows[-1]["uplink_mib"] == pytest.approx(mib)
    assert rows[-1]["sim_seconds"] == pytest.approx(sum(p.price.seconds.max() for p in plans))


def test_cells_wait_for_their_slowest_client(make):
    """A cell's seconds sum its slowest client's time over edge rounds, and the backhaul's."""
    flags = {"cells": 2, "edge_rounds": 3, "local": "ra-fed", "coherence": "edge-round"}
    setup = make("hfedavg", downlink_mbps=0.5, backhaul_mbps=2.0, **flags)
    plan = setup.planner.plan(0)
    lengths, cell_of = lengths_of(plan), setup.planner.network.cell_of
    assert len(plan.draws.h) == 3
    expected = []
    for cell in range(2):
        total = 2 * 32 * P / 2e6  # backhaul of the full model, down and up
        for block in range(3):
            own = (
                client_seconds(
                    setup, plan, block, c, length, uplink="tdma", senders=3, down=32 / 5e5
                )
                for c, length in lengths.items()
                if cell_of[c] == cell
            )
            total += max(own)
        expected.append(total)
    assert plan.price.seconds == pytest.approx(expected, rel=1e-5)
    assert plan.price.backhaul_mib == pytest.approx(2 * 4 * P / 2**20)
    assert plan.price.uplink_mib == pytest.approx(3 * 4 * sum(lengths.values()) / 6 / 2**20)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("options", "bits"),
    [
        ({"downlink_compression": "none"}, lambda length: 32 * length),
        (
            {"downlink_compression": "quantisation", "downlink_compression_bits": 4},
            lambda length: 4 * length + 32 * 4,
        ),
        (
            {"downlink_compression": "top-k", "downlink_compression_keep": 0.05},
            lambda length: round(0.05 * length) * (32 + math.ceil(math.log2(length))),
        ),
        (
            {"downlink_compression": "top-k", "downlink_compression_keep": 0.5},
            lambda length: round(0.5 * length) * 32 + length,
        ),
    ],
    ids=["none", "quantisation", "indices", "bitmap"],
)
@pytest.mark.parametrize("name", ["ra-fed", "fedavg"])
def test_compression_reduces_only_the_downlink(config, toy, name, options, bits):
    """Whole bits: scales of 4 tensors, indices or a bitmap of each client's submodel."""
    own = {"capacities": (1.0, 0.5, 0.2)} if name == "ra-fed" else {}
    free, paid = (
        build(config(name, **own, **flags), data=toy, model=model()).planner
        for flags in ({}, options | {"downlink_mbps": 0.01})
    )
    before, after = free.plan(0), paid.plan(0)
    lengths = list(lengths_of(after).values()) if own else [P] * 6
    assert after.price.downlink_mib == pytest.approx(sum(map(bits, lengths)) / 8 / 6 / 2**20)
    assert after.price.uplink_mib == before.price.uplink_mib
    down = np.array([*map(bits, lengths)]) / 1e4
    who = Participants(after.clients, after.tracking)
    found, without = (
        made.pricing.seconds_of(after.draws, who, np.array([lengths])) for made in (paid, free)
    )
    np.testing.assert_allclose(found - without, down[None], rtol=1e-9)
    assert after.price.seconds == pytest.approx([found.max()])


def test_aircomp_uploads_the_union_of_the_submodels(make):
    """Air time, (34), is that of a cell's union of submodels; bytes count each client's own."""
    flags = {"cells": 2, "edge_rounds": 2, "local": "ra-fed", "cycles_per_step": 1e-3}
    setup = make("hfedavg", uplink="aircomp", capacities=(0.5, 0.3, 0.1), **flags)
    plan, cell_of = setup.planner.plan(0), setup.planner.network.cell_of
    union = []
    for cell in range(2):
        held = [
            own[0] for c, own in zip(plan.clients, plan.client_submodels.chosen, strict=True)
            if cell_of[c] == cell
        ]  # fmt: skip
        union.append(17 * len(np.unique(np.concatenate(held))) + 4)
    lengths = lengths_of(plan)
    assert max(union) < P
    assert min(union) > max(lengths.values())
    np.testing.assert_allclose(plan.price.seconds, 2 * np.array(union) / 14e3 / 600, rtol=1e-6)
    assert plan.price.uplink_mib == pytest.approx(2 * 4 * sum(lengths.values()) / 6 / 2**20)


UNEQUAL = {"rate_mbps": 10.0, "cpu_hz": (1e9, 8e9)}
"""A fixed uplink whose uploads take as long as local steps, and unequal CPUs."""


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("uplink", "more"),
    [
        ("tdma", {}),
        ("ofdma", {}),
        ("fixed", UNEQUAL | {"wait": "mean"}),
        ("fixed", UNEQUAL | {"wait": "slowest"}),
    ],
)
@pytest.mark.parametrize("name", ["ra-fed", "heterofl", "fedrolex"])
def test_widths_by_deadline_are_maximal(make, name, uplink, more):
    """Every round meets the deadline, and with one more neuron it would not."""
    deadline = 0.0032
    flags = {"budget": "deadline", "uplink": uplink, "clients_per_round": 5} | more
    setup = make(name, deadline=deadline, rounds=5, downlink_mbps=40.0, **flags)
    limited = 0
    for number in range(5):
        plan = setup.planner.plan(number)
        assert plan.price.seconds.max() <= deadline
        for client, length in lengths_of(plan).items():
            neurons = (length - 4) // 17
            now, wider = (
                client_seconds(
                    setup, plan, 0, client, 17 * n + 4, uplink=uplink, senders=5, down=32 / 40e6
                )
                for n in (neurons, neurons + 1)
            )
            assert now <= deadline * (1 + 1e-6)
            assert neurons == 30 or wider > deadline * (1 - 1e-6)
            limited += neurons < 30
    assert 0 < limited < 25, "some clients meet the deadline with all neurons, and some need fewer"


@pytest.mark.parametrize("uplink", ["tdma", "aircomp"])
def test_latency_of_levels_is_computed_in_batches(make, monkeypatch, uplink):
    """Batches have at most ``MAX_AT_ONCE`` entries, and the result equals that of one batch."""
    setup = make("ra-fed", uplink=uplink, clients=7, clients_per_round=4, downlink_mbps=1.0)
    draws, pricing = setup.planner.network.draws(Stream(1), [0]), setup.planner.pricing
    who = Participants(np.array([1, 2, 4, 6]), np.ones(4, bool))
    lengths, sizes = levels_of(setup.planner.model.neurons()).parameters, []
    whole = pricing.client_seconds(draws, who, lengths)
    one_go = type(pricing).load

    def watched(self, who, length, jointly):
        sizes.append(length.size)
        return one_go(self, who, length, jointly)

    monkeypatch.setattr(type(pricing), "load", watched)
    monkeypatch.setattr("wirelessfl.air.round_price.MAX_AT_ONCE", 4 * 7 + 1)
    assert np.array_equal(pricing.client_seconds(draws, who, lengths), whole)
    assert whole.shape == (4, 30)
    assert sizes == [4 * 7] * 4 + [4 * 2]


def test_deadline_holds_with_one_channel_per_edge_round(make):
    """Widths are chosen for the slowest edge round, so that every round meets the deadline."""
    flags = {"cells": 2, "edge_rounds": 3, "local": "ra-fed", "coherence": "edge-round"}
    fading = {"antennas": 1, "cycles_per_step": 1e3}  # the channel dominates
    for uplink, deadline, more in (("tdma", 1.5e-3, fading), ("aircomp", 0.012, {})):
        own = flags | more | {"uplink": uplink, "deadline": deadline}
        setup = make("hfedavg", budget="deadline", **own)
        for number in range(6):
            plan = setup.planner.plan(number)
            assert plan.price.seconds.max() <= deadline
            assert plan.client_submodels.widths.min() < 30


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("name", "coverage_wanted"), [("ra-fed", 1), ("ra-fed", 3), ("ram-fed", 4)]
)
def test_fastest_widths_are_optimal(make, name, coverage_wanted):
    """Planned seconds equal the solver's objective, and "covered" masks reach the coverage."""
    flags = {"budget": "fastest", "min_coverage": coverage_wanted, "masks": "covered"}
    setup = make(name, rounds=6, clients_per_round=5, **flags)
    planner = setup.planner
    levels = levels_of(planner.model.neurons())
    assert levels.parameters.tolist() == [17 * n + 4 for n in range(1, 31)]
    for number in range(6):
        plan = planner.plan(number)
        seconds = np.array(
            [
                [
                    client_seconds(setup, plan, 0, c, length, uplink="tdma", senders=5)
                    for length in levels.parameters
                ]
                for c in plan.clients
            ]
        )
        solution = fastest_widths(seconds, levels.widths.T, coverage_wanted)
        assert plan.price.seconds.max() == pytest.approx(solution.objective, rel=1e-5)
        assert (
            coverage(plan.client_submodels.chosen, planner.model.neurons().layers)[0].min()
            >= coverage_wanted
        )
        fewer = fastest_widths(seconds, levels.widths.T, 5).objective
        assert solution.objective < fewer


def test_each_cell_reaches_the_minimum_coverage(make):
    """Each cell is covered separately; in the same time, faster cells train more neurons."""
    flags = {"budget": "fastest", "min_coverage": 2, "masks": "covered"}
    setup = make("hfedavg", local="ra-fed", cells=2, clients=7, rounds=3, **flags)
    planner, training = setup.planner, setup.learner
    levels = levels_of(planner.model.neurons())
    for number in range(3):
        plan = planner.plan(number)
        soonest = []
        for cell in range(2):
            rows = np.flatnonzero(plan.node == cell)
            seconds = [
                [
                    client_seconds(setup, plan, 0, c, length, uplink="tdma", senders=len(rows))
                    for length in levels.parameters
                ]
                for c in plan.clients[rows]
            ]
            soonest.append(5 * fastest_widths(np.array(seconds), levels.widths.T, 2).objective)
            held = coverage(
                plan.client_submodels.of_rows(rows).chosen, planner.model.neurons().layers
            )[0]
            assert held.min() >= 2
        assert plan.price.seconds.max() == pytest.approx(max(soonest), rel=1e-5)
        first = int(np.argmin(soonest))
        widest = plan.client_submodels.widths[plan.node == first]
        assert plan.price.seconds[first] > soonest[first] * 1.001 or (widest == 30).all()
        training.learn(plan, training.server.cloud)
        assert training.metrics["coverage"] >= 2
        assert training.metrics["uncovered"] == 0


def test_error_names_the_cell_with_too_little_coverage(make):
    """Three clients with half of the 30 neurons each have 45 in total, but 60 are required."""
    flags = {"capacities": (0.5,), "masks": "covered", "min_coverage": 2, "cells": 2}
    with pytest.raises(ConfigError, match="of the 3 clients of cell 0 in round 1, but min_cov"):
        make("hfedavg", local="ra-fed", **flags)


def test_rows_report_the_requested_coverage(config, toy):
    flags = {"budget": "fastest", "min_coverage": 2, "masks": "covered"}
    result = wirelessfl.run(config("ra-fed", rounds=4, **flags), data=toy, model=model())
    assert all(row["coverage"] >= 2 for row in result.rows[1:])
    assert all(row["uncovered"] == 0 for row in result.rows[1:])


def test_error_names_the_client_that_misses_the_deadline(config, toy):
    """The message gives the client's number, not its index among the participants."""
    flags = {"budget": "deadline", "clients": 9, "clients_per_round": 3, "seed": 2}
    planner = build(config("ra-fed", deadline=9.0, **flags), data=toy, model=model()).planner
    senders = planner.plan(0).clients
    slowest = senders[planner.network.cpu_hz[senders].argmin()]
    assert slowest > 2
    with pytest.raises(ConfigError, match=f"in round 1 client {slowest} needs"):
        build(config("ra-fed", deadline=1e-6, **flags), data=toy, model=model())
