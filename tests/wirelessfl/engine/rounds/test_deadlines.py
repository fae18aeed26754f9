"""Rounds with a deadline or weighted energy, and comparison with equal shares."""

import re

import numpy as np
import pytest

import wirelessfl
from channels import EqualBands, EqualSlots
from solvers import DeadlineMissedError, EnergyWithinDeadline, LeastTimeAndEnergy, OptimalBands
from wirelessfl.air.links import EQUAL_SHARES, TrainingSettings, compared
from wirelessfl.air.uplinks.ofdma import Ofdma
from wirelessfl.air.uplinks.tdma import Tdma
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.engine.server.ledger import Totals
from wirelessfl.runs.build import build
from wirelessfl.runs.build.planners import planner_without_data

SMALL = {"dataset": "digits", "rounds": 3, "local_steps": 2, "batch_size": 8, "threads": 1}
CELLS = {"cells": 2, "clients": 6, "hidden": (16, 8), "edge_rounds": 2}
LINKS = {"downlink_mbps": 1.0, "backhaul_mbps": 2.0}
RUNS = {
    "hist": ("hist", CELLS),
    "links": ("hist", CELLS | LINKS),
    "sizes": ("hist", CELLS | {"mask_sizes": "optimized", "backhaul_mbps": 2.0}),
    "edge-rounds": ("hfedavg", CELLS | LINKS | {"coherence": "edge-round"}),
    "partial": ("fedavg", {"clients": 6, "clients_per_round": 3}),
    "submodels": (
        "ra-fed",
        {"clients": 4, "hidden": (16,), "capacities": (0.5, 1.0), "downlink_mbps": 1.0},
    ),
    "sessions": ("fedavg", {"clients": 4, "sessions": 2, "presence": "labels"}),
    "cells": ("hfedavg", CELLS | LINKS | {"schedule": "buffered", "buffer": 1, "rounds": 5}),
}


def settings(name, **changes):
    algorithm, flags = RUNS[name]
    return Config.from_flags(algorithm, **(SMALL | flags | {"uplink": "ofdma"} | changes))


def priced(name, **changes):
    return wirelessfl.price(settings(name, **changes))


def longest(prices):
    """Seconds of the longest round of a cell."""
    return float(np.nanmax(prices.node_seconds))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", RUNS)
def test_every_round_takes_exactly_its_deadline(name):
    """Each cell's rounds too; joules are fewer than at full power."""
    full = priced(name, allocation="optimal")
    deadline = 1.3 * longest(full)
    found = priced(name, round_deadline=deadline)
    if name == "cells":
        np.testing.assert_allclose(np.nanmax(found.node_seconds, -1), deadline, rtol=1e-12)
    else:
        np.testing.assert_allclose(found.node_seconds.max(-1), deadline, rtol=1e-12)
        ends = deadline * np.arange(1, len(found) + 1)
        np.testing.assert_allclose(found.total("sim_seconds"), ends, rtol=1e-12)
    assert found.rows[-1]["joules"] < full.rows[-1]["joules"]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", ["hist", "links", "edge-rounds", "cells"])
def test_weighted_rounds_cost_no_more_than_others(name):
    """Round by round: the objective is at most that of full power, and of deadlines around it."""
    weight = 0.5
    found = priced(name, energy_weight=weight)
    clients = 6

    def cost(prices):
        return np.nanmax(prices.node_seconds, -1) + weight * clients * prices.joules

    others = [priced(name, allocation="optimal")]
    others += [priced(name, round_deadline=s * longest(found)) for s in (1.0001, 1.1)]
    for other in others:
        assert cost(found).sum() <= cost(other).sum() * (1 + 1e-9)
    limited = priced(name, energy_weight=1e6, round_deadline=1.1 * longest(found))
    same = priced(name, round_deadline=1.1 * longest(found))
    np.testing.assert_allclose(limited.joules, same.joules, rtol=1e-9)


def test_clients_with_submodels_leave_time_for_whole_models_on_the_backhaul():
    """Edge rounds end when 2 models of 4 bytes a parameter still fit before the deadline."""
    flags = CELLS | LINKS | {"local": "ra-fed", "capacities": (0.25, 0.5)}
    flags = SMALL | flags | {"uplink": "ofdma", "rounds": 2}
    full = Config.from_flags("hfedavg", **flags, allocation="optimal")
    deadline = 1.5 * longest(wirelessfl.price(full))
    made = Config.from_flags("hfedavg", **flags, round_deadline=deadline)
    found = wirelessfl.price(made)
    np.testing.assert_allclose(found.node_seconds, deadline, rtol=1e-12)
    model = 64 * 16 + 16 + 16 * 8 + 8 + 8 * 10 + 10
    planner = planner_without_data(made)
    service = planner.plan(0).price.served.service
    phases = [service.seconds[0, planner.network.cell_of == cell].max() for cell in range(2)]
    np.testing.assert_allclose(2 * np.array(phases) + 2 * 32 * model / 2e6, deadline, rtol=1e-12)


def test_an_impossible_deadline_ends_the_run_before_training():
    """All rounds are planned; the seconds of the longest one give a deadline that fits."""
    full = priced("links", allocation="optimal", rounds=6, seed=2)
    each = full.node_seconds.max(-1)
    assert (each[1:] > each[0]).any()
    short = each[0] * (1 + 1e-9)
    late = int(np.flatnonzero(each > short)[0])
    cell = int(full.node_seconds[late].argmax())
    told = (
        f"uplink 'ofdma', round {late + 1}: round_deadline is {short:g}: cell {cell} needs "
        f"{each[late]:.6g} s even at full power and speed, {each[late] - short:.3g} s more; its "
        "slowest client, "
    )
    with pytest.raises(ConfigError, match=f"^{re.escape(told)}"):
        wirelessfl.runs.build.build(settings("links", round_deadline=short, rounds=6, seed=2))
    assert len(priced("links", round_deadline=each.max() * (1 + 1e-9), rounds=6, seed=2)) == 6


def test_deadlines_are_checked_at_the_rates_that_are_sent():
    """Repeats do not count as a missed deadline, but the lower rates of a margin do."""
    deadline = 1.2 * longest(priced("links", allocation="optimal"))
    repeats = {"round_deadline": deadline, "on_failure": "repeat"}
    made = settings("links", failures="waterfall", waterfall_db=20.0, **repeats)
    wirelessfl.runs.build.build(made)
    assert longest(wirelessfl.price(made)) > 1.1 * deadline
    wirelessfl.runs.build.build(settings("links", failures="outage", margin_db=0.1, **repeats))
    with pytest.raises(ConfigError, match="round 1: round_deadline is"):
        wirelessfl.runs.build.build(settings("links", failures="outage", margin_db=60.0, **repeats))


def test_the_edge_round_that_misses_a_deadline_is_named():
    deadline = 0.5 * longest(priced("edge-rounds", allocation="optimal"))
    with pytest.raises(ConfigError, match=r"round 1: .* cell \d in edge round [12] needs"):
        priced("edge-rounds", round_deadline=deadline)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", ["hist", "edge-rounds", "partial", "cells"])
def test_late_clients_stay_out(name):
    """Rounds keep their deadline; equal shares are those of the clients that take part."""
    links = (
        {"downlink_mbps": 50.0, "backhaul_mbps": 100.0} if "downlink_mbps" in RUNS[name][1] else {}
    )
    deadline = 0.75 * longest(priced(name, allocation="optimal", **links))
    links |= {"round_deadline": deadline, "late": "lost"}
    found = priced(name, **links)
    np.testing.assert_allclose(np.nanmax(found.node_seconds, -1), deadline, rtol=1e-12)
    assert found.rows[-1]["lost"] > 0
    planner = planner_without_data(settings(name, **links))
    price = planner.plan(0).price
    service, equal = price.served.service, price.equal.served.service
    out = ~service.arrived
    assert (service.joules[out] == 0).all()
    assert (equal.joules[out] == 0).all()
    for block, joins in enumerate(service.arrived):
        draw = price.served.draws
        part = draw.block(block).of(draw.network.numbers[joins])
        load = price.served.load
        length = np.broadcast_to(load.elements, joins.shape)[joins]
        cycles = np.broadcast_to(load.cycles, joins.shape)[joins]
        bands = part.network.bandwidth_hz / part.network.cell_sizes.clip(1)
        band = bands[part.network.cell_of]
        rate = band * np.log2(1 + part.snr_hz / band)
        upload = 32 * length / rate
        joules = 1e-28 * part.network.cpu_hz**2 * cycles + part.network.transmit_power_w * upload
        np.testing.assert_allclose(equal.joules[block, joins], joules, rtol=1e-9)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("flags", "equal"),
    [
        ({"allocation": "optimal"}, {"allocation": "equal"}),
        ({"round_deadline": 3.0}, {"allocation": "equal"}),
        ({"energy_weight": 0.1}, {"allocation": "equal"}),
        ({"uplink": "tdma", "order": "ready"}, {"uplink": "tdma"}),
    ],
)
@pytest.mark.parametrize("name", ["links", "edge-rounds", "sessions"])
def test_equal_shares_are_those_of_the_run_with_equal_shares(name, flags, equal):
    found, plain = priced(name, **flags), priced(name, **equal)
    for row, before in zip(found.rows, plain.rows, strict=True):
        assert not set(EQUAL_SHARES) & before.keys()
        assert row["equal_joules"] == pytest.approx(before["joules"], rel=1e-12)
    assert found.rows[-1]["equal_seconds"] == pytest.approx(plain.node_seconds.max(-1).sum())
    assert found.rows[-1]["round_seconds"] == pytest.approx(found.node_seconds.max(-1).sum())
    assert found.summary().splitlines()[-1] == compared(found.rows[-1])
    assert "equal shares" not in plain.summary()


def test_a_run_and_its_summary_compare_with_equal_shares(tmp_path):
    made = settings("hist", round_deadline=1.0, out=str(tmp_path))
    result = wirelessfl.run(made)
    prices = wirelessfl.price(made)
    last = result.rows[-1]
    assert {name: last[name] for name in EQUAL_SHARES} == {
        name: prices.rows[-1][name] for name in EQUAL_SHARES
    }
    assert last["sim_seconds"] == pytest.approx(3.0)
    summary = result.summary()
    change = 100 * (summary["joules"] / summary["equal_joules"] - 1)
    assert f"of {summary['equal_joules']:.4g} J/client ({change:+.1f} %)" in compared(summary)


def test_sums_survive_a_checkpoint():
    totals = Totals.of(Ofdma(round_deadline=1.0), TrainingSettings(1, 1))
    totals.equal_joules = 3.5
    assert Totals(**totals.row()) == totals
    plain = Totals.of(Ofdma(), TrainingSettings(1, 1))
    assert not set(EQUAL_SHARES) & plain.row().keys()
    assert Totals(**plain.row()) == plain
    assert "late" not in plain.row()
    late = Totals.of(Ofdma(), TrainingSettings(1, 1, cutoff_seconds=2.0))
    assert late.row() == plain.row() | {"late": 0}
    assert Totals(**late.row()) == late


def test_accesses_of_settings():
    assert Ofdma(round_deadline=2.0).access == EnergyWithinDeadline()
    assert Ofdma(energy_weight=0.0, round_deadline=2.0).access == LeastTimeAndEnergy(0.0)
    assert Ofdma(round_deadline=2.0).sizing == OptimalBands()
    assert Ofdma(allocation="optimal").equal_shares == EqualBands()
    assert Ofdma().equal_shares is Tdma().equal_shares is Ofdma().deadline_check is None
    assert Tdma(order="ready").equal_shares == EqualSlots()
    assert Ofdma(round_deadline=2.0, late="lost").deadline_check is None


def test_repeats_make_rounds_longer_than_their_deadline():
    """The check before training is of uploads that arrive at once, at the rates of the margin."""
    needed = longest(priced("hist", allocation="optimal"))
    fading = {"uplink": "ofdma", "failures": "outage", "on_failure": "repeat", "csi_error": 0.1}
    found = priced("hist", round_deadline=1.5 * needed, margin_db=1.0, **fading)
    assert (found.node_seconds.max(-1) >= 1.5 * needed).all()
    wanted = settings("hist", round_deadline=1.01 * needed, margin_db=9.0, **fading)
    with pytest.raises(ConfigError, match=r"round_deadline is .* even at full power and speed"):
        build(wanted)


def test_errors_of_accesses_tell_of_settings():
    missed = DeadlineMissedError(1.0, 1.5, 2, 7, 1.25, (0,))
    assert str(missed).startswith("deadline_seconds is 1: cell 2 of item [0] needs 1.5 s")
    told = missed.message("round_deadline", where=" in edge round 1", times=4)
    assert "round_deadline is 4: cell 2 in edge round 1 needs 6 s" in told
    assert "2 s more; its slowest client, 7, needs 5 s in the whole band" in told
