"""Errors of AirComp uploads: whose they are, how they scale, and over which nodes rows average."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.wirelessfl.air.uplinks.test_aircomp import NODE, air_round, exact, received, updates
from wirelessfl.air.uplinks.aircomp import AirComp
from wirelessfl.training.workers.shards import Shards

UNITS = {"update": 0.5, "tracking": 0.25}


def both(air, sent):
    """Receive the same updates as two payloads."""
    reception = AirComp(beamformer="random").receive(replace(air, units=UNITS))
    reception.add(slice(0, len(sent)), {name: sent.clone() for name in UNITS})
    reception.finish(Shards(), list(UNITS), torch.zeros(air.nodes, sent.shape[1]))
    return reception.result()


def test_errors_of_channel_estimates_are_relative_to_the_path_gain():
    """Without noise to speak of, channels that are stronger by any factor change nothing."""
    uplink, sent = AirComp(beamformer="random", csi_error=0.05), updates()
    loss = np.linspace(-60, 10, len(NODE))
    air = air_round(snr_db=200.0)
    found, far = (
        received(uplink, each, sent) for each in (air, air_round(snr_db=200.0, path_gain_db=loss))
    )
    torch.testing.assert_close(far.mean["update"], found.mean["update"], rtol=1e-4, atol=1e-4)
    assert far.metrics == pytest.approx(found.metrics, rel=1e-4)
    assert found.metrics["air_error"] > 1e-3
    assert not torch.allclose(found.mean["update"], exact(air, sent), atol=1e-2)


def test_noise_is_independent_for_each_node_and_payload():
    """Of 4000 elements, the standard error of a correlation is 1.6 %."""
    air, sent = air_round(), updates()
    got = both(air, sent)
    errors = torch.cat([got.mean[name] - exact(air, sent) for name in UNITS]).double().numpy()
    correlation = np.corrcoef(errors)
    assert np.abs(correlation - np.eye(6)).max() < 0.08


@pytest.mark.parametrize("silent", [[1], [0, 2], []])
def test_errors_are_averaged_over_the_nodes_to_which_a_payload_is_sent(silent):
    """The clients of some nodes do not send their tracking terms."""
    sent, quiet = updates(), np.isin(NODE, silent)
    air = replace(air_round(), silent={"tracking": quiet})
    got = both(air, sent)
    heard = torch.from_numpy(~quiet)[:, None]
    means = {"update": exact(air, sent), "tracking": exact(air, sent * heard)}
    for name, title in (("update", "air_error"), ("tracking", "air_error_tracking")):
        errors = ((got.mean[name] - means[name]).double() / UNITS[name]).square().mean(1).numpy()
        nodes = [node for node in range(3) if name == "update" or node not in silent]
        assert got.metrics[title] == pytest.approx(errors[nodes].mean(), rel=1e-5)
        # Of 4000 elements, the standard error of a variance is 2.2 %, at most.
        assert got.metrics[f"{title}_predicted"] == pytest.approx(errors[nodes].mean(), rel=0.1)


def test_a_payload_that_nobody_sends_has_no_error():
    air = replace(air_round(), silent={"tracking": np.ones(len(NODE), dtype=np.bool_)})
    got = both(air, updates())
    assert (got.mean["tracking"] == 0).all()
    assert np.isnan([got.metrics[f"air_error_tracking{end}"] for end in ("", "_predicted")]).all()
    assert got.metrics["air_error"] > 0
