"""Interference in settings: watts of each round, and clients of other cells that take part."""

from dataclasses import replace

import numpy as np
import pytest

import wirelessfl
from channels import ActiveInterference, placed_network, umi
from channels.layouts import Hexagonal
from channels.path_loss import Umi
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.runs.build.planners import planner_without_data
from wirelessfl.runs.folder.identity import network_hash

CELLS = {"cells": 3, "clients": 12, "clients_per_round": 6, "rounds": 3, "uplink": "ofdma"}
PLACES = CELLS | {"layout": "hexagonal", "inter_site_distance_m": 200.0, "reuse_factor": 1}


def config(**flags):
    return wirelessfl.Config.from_flags("hfedavg", **flags)


def test_watts_of_a_file_are_those_of_its_rounds(tmp_path):
    """I/N of 1 halves the SNR of round 2; more watts take longer."""
    plain = planner_without_data(config(**CELLS))
    noise = 10 ** (plain.network.noise_dbm / 10) / 1e3
    file = tmp_path / "watts.csv"
    lines = ["cell 0,cell 1,cell 2", "0,0,0", ",".join(map(repr, noise.tolist()))]
    file.write_text("\n".join(lines))
    planner = planner_without_data(config(**CELLS, interference_watts=file))
    for number, factor in ((0, 1), (1, 2), (2, 1)):
        one, other = plain.plan(number), planner.plan(number)
        np.testing.assert_allclose(other.draws.snr, one.draws.snr / factor, rtol=1e-12)
        assert (other.price.seconds > one.price.seconds).all() == (factor == 2)
    by_client = tmp_path / "clients.csv"
    by_client.write_text(
        "\n".join(["0" + 11 * ",0", ",".join(map(repr, noise.repeat(4).tolist()))])
    )
    clients = planner_without_data(config(**CELLS, interference_watts=by_client))
    for number in range(3):
        one, other = planner.plan(number), clients.plan(number)
        np.testing.assert_array_equal(one.draws.snr, other.draws.snr)
        np.testing.assert_array_equal(one.price.seconds, other.price.seconds)
    always = planner_without_data(config(**CELLS, interference_watts="1e-13"))
    assert (always.network.interference_watts == 1e-13).all()


def test_active_clients_are_those_of_the_round():
    one, active = (
        planner_without_data(config(**PLACES, interferers=who)) for who in ("one", "active")
    )
    assert isinstance(active.network.interference, ActiveInterference)
    plan, before = active.plan(1), one.plan(1)
    np.testing.assert_array_equal(plan.clients, before.clients)
    np.testing.assert_array_equal(plan.draws.h, before.draws.h)
    expected, _ = active.network.of(plan.clients).rises(active.channel_stream, 1)
    np.testing.assert_array_equal(plan.draws.noise_rise[0], expected)
    others, _ = active.network.of(active.plan(2).clients).rises(active.channel_stream, 1)
    assert (others != expected).all()
    default = planner_without_data(config(**PLACES)).plan(1).draws
    np.testing.assert_array_equal(default.noise_rise, before.draws.noise_rise)


@pytest.mark.parametrize("interferers", ["one", "active"])
@pytest.mark.parametrize("flags", [{}, {"allocation": "optimal"}], ids=["equal", "optimal"])
def test_prices_of_networks_are_those_of_each(interferers, flags):
    """With interference in watts by block, priced together as one by one."""
    networks = [
        placed_network(
            *(Hexagonal(200.0), Umi()),
            cells=2,
            clients=6,
            stream=Stream(number),
            cpu_hz=1e9,
            reuse_factor=1,
            interferers=interferers,
            interference_watts=[[1e-13, 0], [0, 1e-12 * number]],
        )
        for number in range(2)
    ]
    networks.append(replace(networks[0], interference=None))
    by_client = 1e-13 * np.arange(12).reshape(2, 6)
    networks.append(replace(networks[0], interference_watts=by_client))
    networks.append(replace(networks[-1], interference=None))
    plain = config(rounds=3, uplink="ofdma", clients_per_round=4, **flags)
    together = wirelessfl.price(plain, network=networks)
    for number, network in enumerate(networks):
        alone = wirelessfl.price(plain, network=network)
        assert np.allclose(together.seconds[number, 1:], alone.seconds.cumsum(), rtol=1e-12)


def test_hashes_tell_watts_apart_and_not_functions():
    plain = umi(cells=1, clients=3, stream=Stream(1))
    hashes = [
        network_hash(replace(plain, interference_watts=watts), Stream(2))
        for watts in (None, 1e-13, [[1e-13], [2e-13]], lambda block: 1e-13, lambda block: 1e-13)
    ]
    assert len(set(hashes[:4])) == 4
    assert hashes[3] == hashes[4]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"interference_watts": "loud"}, "loud is neither a number nor a file"),
        ({"interference_watts": -1.0}, "contains -1: give received watts from 0 to 1"),
        ({"interference_watts": 1e-13, "uplink": "fixed"}, "has no radio channel"),
        ({"interferers": "active", "layout": "disc"}, "needs reuse_factor: set it"),
        (
            PLACES | {"interferers": "active", "schedule": "buffered", "clients_per_round": None},
            "which has no synchronous rounds of one model",
        ),
    ],
)
def test_wrong_interference_is_refused(flags, message):
    with pytest.raises(ConfigError, match=message):
        planner_without_data(config(**({} if "cells" in flags else CELLS) | flags))


@pytest.mark.parametrize("algorithm", ["fedbuff", "sync-st"])
def test_uploads_without_a_common_block_have_no_interference(algorithm, tmp_path):
    """From settings, from a network, and from a file of positions."""
    with pytest.raises(ConfigError, match="whose uploads have no common block"):
        wirelessfl.Config.from_flags(algorithm, interference_watts=1e-13)
    network = umi(cells=1, clients=3, stream=Stream(1))
    plain = wirelessfl.Config.from_flags(algorithm, clients_per_round=None, rounds=2)
    wirelessfl.price(plain, network=network)
    with pytest.raises(ConfigError, match="network has interference_watts, which conflicts"):
        wirelessfl.price(plain, network=replace(network, interference_watts=1e-13))
    file = tmp_path / "places.csv"
    file.write_text("kind,x_m,y_m,interference_watts\nbase_station,0,0,\nclient,20,30,1e-13\n")
    placed = plain.changed(layout="file", layout_file=file, clients=1)
    with pytest.raises(ConfigError, match="network has interference_watts, which conflicts"):
        wirelessfl.price(placed)


def test_over_the_air_watts_of_clients_are_refused(tmp_path):
    """By runs, prices without joules and budgets of clients alike; one per cell is a noise."""
    file = tmp_path / "watts.csv"
    file.write_text(",".join(["1e-13"] * 12))
    settings = config(**CELLS | {"uplink": "aircomp"}, interference_watts=file)
    for joules in (True, False):
        with pytest.raises(ConfigError, match="an edge server hears all clients at once"):
            wirelessfl.price(settings, joules=joules)
    with pytest.raises(ConfigError, match="an edge server hears all clients at once"):
        planner_without_data(settings).plan(0)
    file.write_text("1e-13,0,0")
    wirelessfl.price(settings)
