"""Trained runs over other networks: equal to runs that are trained there, and to single prices."""

from dataclasses import replace

import numpy as np
import pytest

import channels
import wirelessfl
from channels.fading import Rician
from wirelessfl.config import Config
from wirelessfl.setup import planners

SMALL = {"dataset": "digits", "rounds": 3, "local_steps": 1, "hidden": (8,), "threads": 1}
CELLS = {"cells": 2, "clients": 6, "edge_rounds": 2, "backhaul_mbps": 1.0, "downlink_mbps": 9.0}
OPTIMAL = {"name": "ofdma", "allocation": "optimal"}
UPLINKS = {
    "slots": {"name": "tdma"},
    "ready": {"name": "tdma", "order": "ready"},
    "equal": {"name": "ofdma"},
    "optimal": OPTIMAL,
    "fixed": {"name": "fixed"},
    "deadline": {"name": "ofdma", "round_deadline": 9.0},
    "weight": {"name": "ofdma", "energy_weight": 0.3},
}
RUNS = {
    "hist": ("hist", CELLS | {"coherence": "edge-round"}),
    "partial": ("scaffold", {"clients": 6, "clients_per_round": 3, "eval_every": 2}),
    "flops": ("hfedavg", CELLS | {"cycles_per_flop": 1.5}),
    "sessions": ("fedavg", {"clients": 6, "sessions": 2, "warm_start": "proposed"}),
}


def settings(name, **changes):
    algorithm, flags = RUNS[name]
    return Config.from_flags(algorithm, **(SMALL | flags | changes))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {name: wirelessfl.run(settings(name, out=folder / name)) for name in RUNS}


def networks(name, count=3):
    """Networks that differ in gains, powers, bands, CPUs, noise, path gains and interference."""
    cells, clients = (2, 6) if "cells" in RUNS[name][1] else (1, 6)
    found = []
    for number in range(count):
        draw = np.random.default_rng(number)
        base = channels.section_vi_c(cells, clients, stream=channels.Stream(number))
        own = replace(
            base,
            bandwidth_hz=draw.uniform(1e6, 9e6, cells),
            cpu_hz=draw.uniform(1e8, 1e9, clients),
            transmit_power_w=draw.uniform(0.01, 0.2, clients),
            switched_capacitance=draw.uniform(1e-28, 1e-27, clients),
            path_gain_db=draw.uniform(-3, 0, clients),
            cycles_per_step=draw.uniform(1e5, 1e6),
        )
        found.append(own)
    heard = channels.Interference(
        gain=np.full((clients, cells), 1e-10),
        ends=np.cumsum(found[0].cell_sizes),
        band_of=np.zeros(cells, dtype=int),
    )
    rician = replace(found[1], fading=Rician(3.0))
    return [*found, replace(found[0], interference=heard), rician]


def assert_same(found, wanted):
    """Rows equal, seconds and joules up to rounding, everything else exactly."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        one, other = ({k: v for k, v in r.items() if k != "wall_seconds"} for r in (one, other))
        assert one.keys() == other.keys()
        for name, value in other.items():
            if name in ("sim_seconds", "extra_seconds") or "joules" in name or "_seconds" in name:
                assert one[name] == pytest.approx(value, rel=1e-12, abs=0), name
            else:
                assert one[name] == value, name


@pytest.fixture
def no_data(monkeypatch):
    def refused(*_):
        raise AssertionError("data are read")

    monkeypatch.setattr(planners.Loaded, "dataset", refused)


@pytest.mark.parametrize("name", RUNS)
def test_prices_are_the_rows_of_runs_over_these_networks(name, runs, tmp_path):
    """A run that is trained over each network; the networks are priced together."""
    some = networks(name)
    found = wirelessfl.price(runs[name], network=some, uplink=OPTIMAL)
    assert isinstance(found, wirelessfl.PricedNetworks)
    places = (0, 3) if name == "hist" else (1,)
    radio = ("cells", "clients", "cycles_per_flop")
    flags = {k: v for k, v in (SMALL | RUNS[name][1]).items() if k not in radio}
    for place in places:
        config = Config.from_flags(
            RUNS[name][0], **flags, out=tmp_path / str(place), uplink="ofdma", allocation="optimal"
        )
        trained = wirelessfl.run(config, network=some[place])
        assert_same(found[place].rows, trained.rows)
        np.testing.assert_allclose(
            found.seconds[place], [row["sim_seconds"] for row in trained.rows], rtol=1e-12
        )


@pytest.mark.parametrize("uplink", UPLINKS)
def test_networks_together_are_the_networks_one_by_one(uplink, runs, no_data):
    for name in ("hist", "partial"):
        some = networks(name)
        found = wirelessfl.price(runs[name], network=some, uplink=UPLINKS[uplink])
        for place, network in enumerate(some):
            alone = wirelessfl.price(runs[name], network=network, uplink=UPLINKS[uplink])
            assert_same(found[place].rows, alone.rows)
            assert found[place].settings == alone.settings
        assert len(np.unique(found.joules[:, -1])) >= 3
