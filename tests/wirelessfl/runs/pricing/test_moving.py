"""Clients that move: fading that is correlated in time."""

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
        ("fedavg", {"block_seconds": 2.0}, "block_seconds=2.0 needs doppler_hz: set it"),
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
