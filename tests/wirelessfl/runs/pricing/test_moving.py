"""Clients that move, and fading that is correlated in time, in prices, plans, designs and runs."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import channels
import wirelessfl
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.designs.choices import Family
from wirelessfl.extend import FadingModel
from wirelessfl.runs.build.planners import planner_without_data
from wirelessfl.runs.folder.identity import network_hash

SMALL = {"clients": 6, "rounds": 4, "antennas": 2, "uplink": "ofdma"}


DISC = {"layout": "disc", "radius_m": 150.0, "mobility": "waypoint"}
STILL = {"layout": "disc", "radius_m": 150.0}
WALKS = DISC | {"speed_kmh": (20.0, 60.0), "block_seconds": 5.0}


def config(algorithm="fedavg", **flags):
    return wirelessfl.Config.from_flags(algorithm, **SMALL | flags)


def gains(settings):
    """Gains [rounds, clients] of the planned rounds."""
    planner = planner_without_data(settings)
    return np.stack([planner.plan(number).draws.gain[0] for number in range(4)])


@pytest.mark.parametrize("model", ["jakes", "ar1"])
def test_fading_of_rounds_is_correlated(model):
    """At 0 Hz rounds have one channel; at a zero of J0 an AR(1) has independent ones, as usual."""
    still = gains(config(doppler_hz=0.0, doppler_model=model))
    assert np.array_equal(still, np.broadcast_to(still[0], still.shape))
    slow = gains(config(doppler_hz=0.01, doppler_model=model))
    assert 0 < np.abs(slow - slow[0]).max() < 0.2 * slow.max()
    usual = gains(config())
    fast = gains(config(doppler_hz=2.404825557695773 / (2 * np.pi), doppler_model=model))
    assert np.array_equal(fast, usual) == (model == "ar1")


def test_blocks_are_edge_rounds_where_these_have_channels_of_their_own():
    flags = {"cells": 2, "edge_rounds": 3, "coherence": "edge-round", "doppler_hz": 1.0}
    settings = config("hfedavg", **flags, block_seconds=0.05)
    planner = planner_without_data(settings)
    fading = channels.Doppler(channels.Rayleigh(), 1.0, 0.05)
    plain = replace(planner.network, fading=fading)
    expected = plain.draws(planner.channel_stream, [6, 7, 8]).h
    assert np.array_equal(planner.plan(2).draws.h, expected)


def test_prices_of_networks_are_those_of_each():
    """Networks with one correlated fading are priced together, as one by one."""
    objects = [channels.umi(cells=1, clients=6, stream=Stream(number)) for number in range(3)]
    objects = [
        replace(network, fading=channels.Doppler(channels.Rayleigh(), 2.0, 0.03))
        for network in objects
    ]
    plain = wirelessfl.Config.from_flags("fedavg", rounds=4, uplink="ofdma")
    together = wirelessfl.price(plain, network=objects)
    for number, network in enumerate(objects):
        alone = wirelessfl.price(plain, network=network)
        assert np.allclose(together.seconds[number, 1:], alone.seconds.cumsum(), rtol=1e-12)


def test_designs_take_the_mean_over_independent_blocks():
    """The sample of a design has other channels in each round, however slowly these change."""
    settings = config(doppler_hz=0.0)
    family = Family("fedavg", settings, planner_without_data(settings), None)
    plain = Family("fedavg", config(), planner_without_data(config()), None)
    costs = [
        each.sample(None, 5).of(each.planner.links.uplink, [1], [1]) for each in (family, plain)
    ]
    assert np.array_equal(costs[0].seconds, costs[1].seconds)
    assert np.unique(costs[0].seconds).size == 5


def test_the_hash_of_a_network_tells_its_doppler_shift():
    network = channels.umi(cells=1, clients=3, stream=Stream(1))
    of = [
        network_hash(
            replace(network, fading=channels.Doppler(doppler_hz=hz, model="ar1")), Stream(1)
        )
        for hz in (0.0, 0.01)
    ]
    assert of[0] != of[1]


@dataclass(frozen=True)
class Own(FadingModel):
    """A model of a user."""

    def build(self):
        return channels.Recorded(np.full((1, 6, 2), 1e-5 + 0j))


@pytest.mark.parametrize(
    ("algorithm", "flags", "words"),
    [
        ("fedavg", {"block_seconds": 2.0}, "block_seconds=2.0 needs doppler_hz or mobility"),
        ("fedavg", {"mobility": "waypoint"}, 'layout "section-vi-c", which has no positions'),
        ("fedavg", DISC | {"speed_doppler": "ar1", "doppler_hz": 1.0}, "which is the shift of all"),
        ("fedast", DISC, "whose uploads have no common block"),
        ("fedavg", DISC | {"uplink": "fixed"}, "has no radio channel"),
        ("fedavg", {"layout": "disc", "speed_kmh": 3.0}, 'is a setting of mobility "waypoint"'),
        ("fedavg", {"layout": "disc", "speed_kmh": ("5",)}, "speed_kmh=5 is a setting of mobility"),
        ("fedavg", STILL | {"mobility": "trace"}, "mobility is 'trace', which needs positions"),
        ("fedavg", {"doppler_model": "ar1"}, "needs doppler_hz"),
        ("fedavg", {"doppler_hz": 1.0, "channel": "h.npz"}, "conflicts with channel=h.npz"),
        ("fedast", {"doppler_hz": 1.0}, "whose uploads have no common block"),
        ("fedavg", {"doppler_hz": 1.0, "uplink": "fixed"}, "has no radio channel"),
    ],
)
def test_refusals(algorithm, flags, words):
    with pytest.raises(ConfigError, match=words):
        config(algorithm, **flags)


def test_fading_of_ones_own_is_refused():
    settings = config(doppler_hz=1.0, fading=f"{__name__}:Own")
    with pytest.raises(ConfigError, match="doppler_hz applies to Rayleigh and Rician fading"):
        wirelessfl.price(settings)


AIR = {"uplink": "aircomp", "antennas": 1, "threshold": 0.3, "csi_error": 0.1}
CASES = {
    "bands": ("fedavg", {"allocation": "optimal"}),
    "failures": ("fedavg", {"failures": "outage", "csi_error": 0.1}),
    "air": ("hfedavg", AIR | {"cells": 2, "edge_rounds": 2}),
    "selected": ("fedavg", {"select": "best-channel", "clients_per_round": 2, "uplink": "tdma"}),
    "masks": ("hist", {"cells": 2, "edge_rounds": 2, "mask_sizes": "optimized"}),
    "reuse": ("hfedavg", {"cells": 3, "reuse_factor": 1, "edge_rounds": 1}),
    "log": ("fedavg", {"client_log": True, "doppler_hz": 0.2}),
}
FAST = {"dataset": "digits", "hidden": (8,), "local_steps": 2, "workers": 1, "chunk": 6}


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("case", CASES)
def test_clients_at_speed_0_have_the_rows_of_clients_that_stand(case, tmp_path):
    algorithm, flags = CASES[case]
    runs = [
        wirelessfl.run(config(algorithm, **FAST | move | flags, out=tmp_path / name))
        for name, move in (("stand", STILL), ("speed 0", DISC | {"speed_kmh": 0.0}))
    ]
    rows = [[{**row, "wall_seconds": 0} for row in run.rows] for run in runs]
    assert rows[0] == rows[1]
    weights = [run.model().state_dict() for run in runs]
    assert all(np.array_equal(weights[0][name], value) for name, value in weights[1].items())


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("case", CASES)
def test_prices_are_those_of_the_run(case, tmp_path):
    """Seconds and joules of rounds with moving clients, and not those of clients that stand."""
    algorithm, flags = CASES[case]
    flags = FAST | WALKS | flags
    run = wirelessfl.run(config(algorithm, **flags, out=tmp_path / "run"))
    flags = {key: value for key, value in flags.items() if key != "client_log"}
    price = wirelessfl.price(config(algorithm, **flags))
    for name in ("sim_seconds", "joules", "joules_max"):
        assert [row[name] for row in price.rows] == [row[name] for row in run.rows]
    stands = {key: value for key, value in flags.items() if key not in WALKS} | STILL
    if case != "log":
        assert price.rows[-1] != wirelessfl.price(config(algorithm, **stands)).rows[-1]


def test_a_resumed_run_has_the_channels_of_one_that_ran_through(tmp_path):
    """Nothing is kept between rounds: a run of two rounds, extended, equals one of four."""
    flags = FAST | WALKS | {"doppler_hz": 0.1, "doppler_model": "ar1"}
    whole = wirelessfl.run(config(**flags, out=tmp_path / "whole"))
    first = wirelessfl.run(config(**flags | {"rounds": 2}, out=tmp_path / "part"))
    assert len(first.rows) == 3
    more = wirelessfl.resume(tmp_path / "part", rounds=4)
    rows = [[{**row, "wall_seconds": 0} for row in run.rows] for run in (whole, more)]
    assert rows[0] == rows[1]


def test_prices_of_moving_networks_are_those_of_each():
    objects = [
        channels.placed_network(
            channels.Disc(150.0), channels.Umi(), cells=1, clients=6, stream=Stream(number),
            cpu_hz=1e9, mobility=channels.RandomWaypoint(50.0), block_seconds=5.0,
        )
        for number in range(3)
    ]  # fmt: skip
    plain = wirelessfl.Config.from_flags("fedavg", rounds=4, uplink="ofdma")
    together = wirelessfl.price(plain, network=objects)
    for number, network in enumerate(objects):
        alone = wirelessfl.price(plain, network=network)
        assert np.allclose(together.seconds[number, 1:], alone.seconds.cumsum(), rtol=1e-12)
    assert network_hash(objects[0], Stream(1)) != network_hash(
        replace(objects[0], fading=channels.Rayleigh()), Stream(1)
    )


def test_designs_spread_their_sample_over_the_rounds():
    """Its positions are those of the run's rounds, not of the first ones."""
    settings = config(**WALKS | {"rounds": 1000})
    planner = planner_without_data(settings)
    sample = Family("fedavg", settings, planner, None).sample(None, 6)
    (group,) = sample.rounds
    blocks = [int(1000 * ((5**0.5 - 1) / 2 * n % 1)) for n in range(6)]
    expected = planner.network.fading.changes_db(blocks, np.arange(6))
    assert np.array_equal(group.draws.changes_db, expected)


def test_a_trace_moves_the_clients_of_a_run(tmp_path):
    file = tmp_path / "walk.csv"
    file.write_text("client,round,x_m,y_m\n3,1,20,0\n3,4,140,0\n")
    trace = STILL | {"mobility": "trace", "positions": file, "shadowing_db": 0.0}
    trace |= {"line_of_sight": "never"}
    settings = config(**trace)
    planner = planner_without_data(settings)
    changes = np.stack([planner.plan(n).draws.changes_db[0] for n in range(4)])
    loss = channels.Umi().loss_db([20.0, 60.0, 100.0, 140.0], False)
    assert np.allclose(changes[:, 3], loss[0] - loss)
    assert (np.delete(changes, 3, axis=1) == 0).all()
    with pytest.raises(ConfigError, match=r"line 2: client is 3. Give 0 to 2"):
        wirelessfl.price(config(**trace | {"clients": 3}))
