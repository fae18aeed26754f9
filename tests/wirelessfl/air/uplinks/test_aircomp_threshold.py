"""AirComp with truncated channel inversion: who stays silent, and what that costs."""

import numpy as np
import pytest

import wirelessfl
from channels import Network, Stream
from wirelessfl.air.uplinks.air_sums import AirReception
from wirelessfl.air.uplinks.aircomp import AirComp
from wirelessfl.runs.build import build

CELLS = np.repeat([0, 1], [40, 60])


def draws(antennas=2, path_gain_db=0.0):
    network = Network.from_snr(
        CELLS, cpu_hz=1e9, snr_db=0.0, antennas=antennas, path_gain_db=path_gain_db
    )
    return network.draws(Stream(1), range(3))


def test_clients_whose_channel_power_is_below_the_threshold_are_silent():
    """Independently of the mean gain of a client; at 0, all send."""
    loss = np.linspace(-70, 0, 100)
    found = AirComp(threshold=0.4).silent(draws(path_gain_db=loss))
    plain = draws()
    power = (np.abs(plain.h.astype(complex)) ** 2).sum(-1) / 2
    np.testing.assert_array_equal(found, power < 0.4)
    assert 0 < found.sum() < found.size
    assert AirComp().silent(plain) is None


@pytest.mark.parametrize("threshold", [0.2, 1.0])
def test_the_fraction_of_silent_clients_is_that_of_rayleigh_fading(threshold):
    """1 - e^-t for one antenna (Zhu et al., 2020); 40 blocks of 100 clients."""
    network = Network.from_snr(CELLS, cpu_hz=1e9, snr_db=0.0, antennas=1)
    found = AirComp(threshold=threshold).silent(network.draws(Stream(2), range(40)))
    expected = 1 - np.exp(-threshold)
    standard = np.sqrt(expected * (1 - expected) / found.size)
    assert found.mean() == pytest.approx(expected, abs=4 * standard)


@pytest.mark.parametrize("convention", ["published", "physical"])
def test_silent_clients_send_nothing(config, convention):
    """Power, bytes and beamformers of a plan know who is silent."""
    flags = {"uplink": "aircomp", "convention": convention, "antennas": 1, "beamformer_starts": 2}
    setup = build(config("hist", threshold=0.5, **flags))
    plan = setup.planner.plan(0)
    served = plan.price.served
    silent = setup.planner.links.uplink.silent(plan.draws)
    assert silent.any()
    assert not silent.all()
    powers = served.service.decision.powers_w
    assert (powers[silent] == 0).all()
    assert (powers[~silent] > 0).all()
    everyone = build(config("hist", **flags)).planner.plan(0)
    sending = 1 - silent.mean(0)
    elements = plan.price.served.load.elements + setup.planner.links.uplink.side_elements
    assert plan.price.uplink_mib / everyone.price.uplink_mib == pytest.approx(
        (sending * elements).sum() / elements.sum()
    )


def test_silent_clients_lower_the_noise(config, toy, same):
    """Rows count them; the weakest client limits the power no longer."""
    flags = {"uplink": "aircomp", "convention": "physical", "antennas": 1, "rounds": 2}
    flags |= {"snr_db": 20.0}
    truncated = wirelessfl.run(config("hist", threshold=0.3, **flags), data=toy)
    everyone = wirelessfl.run(config("hist", **flags), data=toy)
    same(truncated, wirelessfl.run(config("hist", threshold=0.3, **flags), data=toy))
    assert truncated.rows[-1]["silent"] > 0
    assert truncated.rows[-1]["air_error"] < 0.5 * everyone.rows[-1]["air_error"]
    assert truncated.rows[-1]["uplink_mib"] < everyone.rows[-1]["uplink_mib"]


def test_errors_are_averaged_over_edge_rounds_with_a_sender(config, toy, monkeypatch):
    """Of two clients with one antenna, both are silent in some of five edge rounds."""
    found = []
    finish = AirReception.finish

    def watch(self, *args):
        finish(self, *args)
        found.append((len(self.air.clients), self.result().metrics["air_error"]))

    monkeypatch.setattr(AirReception, "finish", watch)
    flags = {"uplink": "aircomp", "threshold": 1.5, "antennas": 1, "clients": 2, "cells": 2}
    run = wirelessfl.run(config("hist", rounds=1, **flags), data=toy)
    heard = [error for clients, error in found if clients]
    assert 0 < len(heard) < 5 == len(found)
    assert run.rows[-1]["air_error"] == pytest.approx(np.mean(heard))


def test_cells_without_a_sender_keep_their_model(config, toy):
    """No client has a channel power of 1000 times its mean, so the model does not change."""
    run = wirelessfl.run(
        config("hist", uplink="aircomp", threshold=1000.0, rounds=1, antennas=1), data=toy
    )
    first, last = run.rows
    assert last["accuracy"] == first["accuracy"]
    assert last["loss"] == first["loss"]
    assert last["uplink_mib"] == 0
    assert last["air_error"] is None
