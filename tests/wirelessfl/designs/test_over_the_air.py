"""Designs over the air: rounds by the error variance, compared with an enumeration by plans."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from channels import Network
from channels.streams import Stream
from solvers import Status
from tests.wirelessfl.designs.known import Known, config
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.designs.design import design
from wirelessfl.designs.ways import air_noise, pilot_config
from wirelessfl.runs.build.planners import planner_without_data

RADIO = {"antennas": 2, "snr_db": 10.0}
AIR = {"uplink": "aircomp", "convention": "physical", "elements_per_symbol": 2}
FEW = {"local_steps": [2, 5], "edge_rounds": [1, 3], "draws": 2}


class Noisy(Known):
    """The known curve, and ``RISE`` rounds per sigma^2."""

    RISE = 0.0

    def shape(self, *args, noise=0.0, **where):
        return super().shape(*args, **where) + self.RISE * noise


class Noisier(Noisy):
    RISE = 1e5


def seconds(h, e, **uplink):
    """Mean seconds of a round, from plans one by one."""
    planner = planner_without_data(
        config("hfedavg", **RADIO, **uplink, local_steps=h, edge_rounds=e)
    )
    planner = replace(planner, stream=Stream(1).child("design"))
    return np.mean([planner.plan(number).price.seconds.max() for number in range(FEW["draws"])])


@pytest.mark.parametrize(("curve", "name"), [(Noisy(), "aircomp"), (Noisier(), "tdma")])
def test_the_soonest_is_that_of_an_enumeration(curve, name):
    uplinks = {"aircomp": AIR, "tdma": {"uplink": "tdma"}, "ready": {"order": "ready"}}
    noise = {"aircomp": 0.1}  # 10 dB
    found = {
        (uplink, h, e): np.ceil(curve.rounds(0.5, h, e, noise=noise.get(uplink, 0.0)))
        * seconds(h, e, **settings)
        for uplink, settings in uplinks.items()
        for h, e in itertools.product(FEW["local_steps"], FEW["edge_rounds"])
    }
    solution = design(
        config("hfedavg", **RADIO, **AIR), target=0.5, curve=curve, uplinks=["tdma", "aircomp"],
        **FEW,
    )  # fmt: skip
    made, best = solution.value, min(found, key=found.get)
    assert solution.objective == pytest.approx(found[best], rel=1e-9)
    assert (made.choice.local_steps, made.choice.edge_rounds) == best[1:]
    assert made.choice.way.name == made.config.named("uplink") == name
    assert solution.status is Status.FEASIBLE
    assert ("of the settings" in solution.message) == (name == "aircomp")
    rounds = np.ceil(curve.rounds(0.5, *best[1:], noise=noise.get(name, 0.0)))
    assert made.predicted.rounds.value == pytest.approx(rounds)
    if name == "aircomp":
        assert made.config.uplink.convention == "physical"
        assert made.config.uplink.elements_per_symbol == 2


def test_the_weakest_clients_make_the_noise():
    """Cells {0, 1} and {2}: 1/(SNR g) is at most 1/10 and 1/2; 1/g is at most 1 and 1/2."""
    links = {"snr_db": [10.0, 20.0, 0.0], "path_gain_db": [0.0, 0.0, 3.0103]}
    network = Network.from_snr([0, 0, 1], **links, cpu_hz=1e9)
    assert air_noise(network) == pytest.approx((0.1 + 0.5) / (1 + 0.5), rel=1e-5)


def test_pilots_of_clients_at_positions_have_one_snr():
    settings = config("hfedavg", layout="disc", noise_figure_db=7.0, antennas=3)
    made = pilot_config(settings, {"name": "aircomp", "convention": "mmse"}, replaced=False)
    assert made.named("layout") == "section-vi-c"
    assert (made.network.antennas, made.uplink.convention) == (3, "mmse")


def test_unknown_noise_is_refused():
    curve = Noisy()
    curve.varies = ("local_steps", "edge_rounds")
    with pytest.raises(ConfigError, match="whose pilots differ in noise"):
        design(config("hfedavg"), target=0.5, curve=curve, uplinks="aircomp", **FEW)
    network = planner_without_data(config("hfedavg")).network
    settings = Config.from_flags("hfedavg", hidden=(8,))
    with pytest.raises(ConfigError, match="give a curve"):
        design(settings, target=0.5, network=network, uplinks="aircomp", **FEW)
