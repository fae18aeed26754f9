"""Compressed uploads: exact bits in all regimes, error feedback, equality without compression."""

import math

import numpy as np
import pytest
import torch

import wirelessfl
from tests.wirelessfl.small import flat, model
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.runs.build import build

MBPS, P = 0.01, 12 * 10 + 10 + 10 * 4 + 4
MIB = 8 * 2**20


def ran(config, toy, algorithm="fedavg", **flags):
    return wirelessfl.run(config(algorithm, **flags), data=toy, model=model())


KEPT = round(0.05 * P)
BITS = {
    "top-k": ({"uplink_compression_keep": 0.05}, KEPT * (32 + math.ceil(math.log2(P)))),
    "quantisation": ({"uplink_compression_bits": 3}, 3 * P + 4 * 32),
    "sign": ({}, P + 32),
}


@pytest.mark.parametrize("name", BITS)
def test_seconds_and_traffic_count_the_bits_that_are_sent(config, toy, name):
    """Over a fixed link an upload takes bits / rate, and nothing else changes."""
    more, bits = BITS[name]
    usual = {"uplink": "fixed", "rate_mbps": MBPS, "rounds": 2}
    whole = ran(config, toy, **usual).rows[1:]
    small = ran(config, toy, **usual, uplink_compression=name, **more).rows[1:]
    for number, (before, after) in enumerate(zip(whole, small, strict=True), 1):
        saved = number * (32 * P - bits) / (1e6 * MBPS)
        assert after["sim_seconds"] == pytest.approx(before["sim_seconds"] - saved)
        assert after["uplink_mib"] == pytest.approx(number * bits / MIB, rel=1e-12)
        assert after["downlink_mib"] == before["downlink_mib"]
        assert 0 < after["uplink_error"] < 1 or name == "quantisation"


def test_tracking_terms_are_sent_as_they_are(config, toy):
    """Of SCAFFOLD's two vectors the change of the model is compressed."""
    row = ran(config, toy, "scaffold", uplink_compression="sign", rounds=1).rows[-1]
    assert row["uplink_mib"] == pytest.approx((P + 32 + 32 * P) / MIB, rel=1e-12)


def test_mean_traffic_of_clients_that_track_in_part(config, toy):
    """A fixed link that waits for the mean number of bits takes that many over its rate."""
    flags = {"uplink": "fixed", "wait": "mean", "rate_mbps": MBPS, "tracking_clients": 3}
    settings = config("scaffold", **flags, uplink_compression="sign")
    plan = build(settings, data=toy, model=model()).planner.plan(0)
    load, service = plan.price.served.load, plan.price.served.service
    before = load.start_seconds + load.cycles / plan.draws.network.cpu_hz
    bits = (P + 32) + 32 * P * 3 / 6
    assert len(set(load.bits.tolist())) == 2
    np.testing.assert_allclose(service.seconds - before, bits / (1e6 * MBPS), rtol=1e-12)


def test_bits_of_submodels_are_those_of_their_elements(config, toy):
    """In cells, each client sends a share of its own cell's submodel, in each edge round."""
    flags = {"cells": 3, "mask_sizes": "optimized", "slowdown": 20.0, "size_cap": 2.0, "rounds": 1}
    settings = config("hist", **flags, edge_rounds=2, uplink_compression="top-k")
    setup = build(settings, data=toy, model=model())
    plan = setup.planner.plan(0)
    lengths = plan.submodels.lengths[plan.node]
    assert len(set(lengths)) > 1
    bits = [
        min(k * (32 + math.ceil(math.log2(n))), 32 * k + n)
        for n in lengths.tolist()
        for k in [round(0.1 * n)]
    ]
    assert plan.price.uplink_mib == pytest.approx(2 * sum(bits) / 6 / MIB, rel=1e-12)
    load = plan.price.served.load
    np.testing.assert_allclose(load.bits, bits, rtol=1e-12)


OTHER = ("wall_seconds", "uplink_error")
REGIMES = {
    "rounds": ("fedavg", {}),
    "cells": ("hist", {"cells": 2, "edge_rounds": 2}),
    "buffered": ("fedast", {"requests": 4, "buffer": 2, "rounds": 6, "eval_every": 2}),
    "task rounds": ("sync-st", {"first": 3, "eval_every": 1}),
    "asynchronous cells": ("hfedavg", {"cells": 2, "schedule": "buffered", "buffer": 1}),
    "submodels": ("ra-fed", {"capacities": (1.0, 0.5)}),
    "sessions": ("fedavg", {"sessions": 2, "split": "iid"}),
    "tracking": ("scaffold", {}),
}


@pytest.mark.parametrize("name", REGIMES)
def test_32_bits_equal_no_compression(config, toy, name):
    """Rows and models to the bit, but for the error, which is 0."""
    algorithm, flags = REGIMES[name]
    whole = ran(config, toy, algorithm, **flags)
    same = {"uplink_compression": "quantisation", "uplink_compression_bits": 32}
    sent = ran(config, toy, algorithm, **flags, **same, error_feedback=True)
    for before, after in zip(whole.rows, sent.rows, strict=True):
        assert after.get("uplink_error", 0.0) == 0
        assert {n: v for n, v in after.items() if n not in OTHER} == {
            n: v for n, v in before.items() if n not in OTHER
        }
    assert torch.equal(flat(whole), flat(sent))


@pytest.mark.parametrize("name", ["buffered", "task rounds", "asynchronous cells", "sessions"])
def test_traffic_shrinks_in_every_regime(config, toy, name):
    """Signs take P + 32 bits of 32 P; the seconds of wireless requests follow."""
    algorithm, flags = REGIMES[name]
    if name in ("buffered", "task rounds"):
        flags = flags | {"delays": "wireless", "bandwidth_hz": 1e4}
    whole = ran(config, toy, algorithm, **flags).rows[-1]
    sent = ran(config, toy, algorithm, **flags, uplink_compression="sign").rows[-1]
    ratio = (P + 32) / (32 * P)
    assert sent["sim_seconds"] < whole["sim_seconds"]
    if name in ("buffered", "asynchronous cells"):  # others may be under way
        updates = sent["uplink_mib"] * MIB * 6 / (P + 32)
        assert updates > 0
        assert updates == pytest.approx(round(updates), rel=1e-9)
    else:
        assert sent["uplink_mib"] == pytest.approx(ratio * whole["uplink_mib"], rel=1e-12)


def test_chunks_do_not_change_what_is_sent(config, toy):
    """Draws and memory belong to clients."""
    flags = {"uplink_compression": "quantisation", "uplink_compression_bits": 2}
    one, six = (
        flat(ran(config, toy, **flags, error_feedback=True, chunk=chunk)) for chunk in (1, 6)
    )
    torch.testing.assert_close(one, six, rtol=0, atol=1e-6)


def quadratic():
    """f_i(w) = <a_i, w>^2 + ||w||^2 / 4 of three clients, whose mean has its minimum 0 at w = 0.

    Of the first gradients at w = (t, t, t) the largest elements point away from the minimum
    (Beznosikov et al., 2020, Example 1).
    """
    corners = [[-3.0, 2.0, 2.0], [2.0, -3.0, 2.0], [2.0, 2.0, -3.0]]
    x = torch.tensor([row for a in corners for row in ([2 * e for e in a], *torch.eye(3).tolist())])
    return Dataset("quadratic", x, torch.zeros(12, 1), x, torch.zeros(12, 1), 1)


def trained(**flags):
    linear = torch.nn.Linear(3, 1, bias=False)
    torch.nn.init.ones_(linear.weight)
    config = Config.from_flags(
        "fedavg", clients=3, local_steps=1, batch_size=4, lr=0.02, rounds=400, loss="mse",
        eval_every=400, uplink_compression="top-k", uplink_compression_keep=0.3, **flags,
    )  # fmt: skip
    split = [list(range(4 * client, 4 * client + 4)) for client in range(3)]
    result = wirelessfl.run(config, data=quadratic(), model=linear, split=split)
    return float(flat(result).norm())


def test_error_feedback_converges_where_top_k_diverges():
    """One of three elements: without feedback the norm grows, with it the minimum is found."""
    assert trained() > math.sqrt(3)
    assert trained(error_feedback=True) < 1e-3


def test_residuals_add_up_to_what_was_not_sent(config, toy):
    """One client: the sum of all that is sent and the residual is the sum of its changes."""
    flags = {"clients": 1, "uplink_compression": "top-k", "error_feedback": True, "rounds": 3}
    setup = build(config("fedavg", **flags), data=toy, model=model())
    learner, changes = setup.learner, []
    train = learner.local.executor.train

    def watched(job):
        for chunk in train(job):
            changes.append(chunk.payloads["update"].clone())
            yield chunk

    learner.local.executor.train = watched
    start = learner.server.cloud["params"].clone()
    for number in range(3):
        learner.learn(setup.planner.plan(number), learner.server.cloud)
    residual = learner.server.states.get("uplink_residual", 0)
    sent = learner.server.cloud["params"] - start
    torch.testing.assert_close(sent + residual, sum(changes)[0], rtol=0, atol=1e-6)
    assert (residual != 0).float().mean() > 0.5


REFUSED = {
    "analog": (
        ("hist", {"uplink": "aircomp", "uplink_compression": "sign"}),
        r'^uplink_compression="sign" conflicts with uplink "aircomp", .*: choose uplink "tdma"',
    ),
    "models": (
        ("fedasync", {"uplink_compression": "top-k"}),
        r'^uplink_compression="top-k" conflicts with algorithm "fedasync", .* send models',
    ),
    "nothing to feed back": (
        ("fedavg", {"error_feedback": True}),
        r"^error_feedback=True needs uplink_compression: set it, or leave error_feedback out\.$",
    ),
    "what the server counts with": (
        ("fa-nt", {"variables": "one", "uplink_compression": "sign"}),
        r"needs the server's step to be the mean of the clients' own steps",
    ),
    "setting of another": (
        ("fedavg", {"uplink_compression": "sign", "uplink_compression_bits": 4}),
        r"^uplink_compression_bits=4 is a setting of uplink compression \"quantisation\", and "
        r"uplink_compression is \"sign\": choose",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name):
    (algorithm, flags), message = REFUSED[name]
    with pytest.raises(ConfigError, match=message):
        Config.from_flags(algorithm, **flags)
