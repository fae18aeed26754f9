"""Clients that are late by a part of a symbol, over the air: sums, and errors against formulas."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import wirelessfl
from channels.streams import Stream
from channels.time_offsets import delays, steps
from tests.wirelessfl.air.uplinks.test_aircomp import air_round, exact, received, updates
from wirelessfl.air.uplinks.aircomp import AirComp

SENT = updates()[:, :200].cumsum(1) / 4
"""Updates whose neighbouring elements are correlated."""
FAST = {"beamformer_starts": 2}


def test_nodes_receive_parts_of_neighbouring_elements():
    """Without noise to speak of: each client's delay is that of its stream, also with submodels."""
    mask = torch.ones(3, 200, dtype=torch.bool)
    mask[0, 100:150], mask[2, ::3] = False, False
    air = air_round(snr_db=150.0, exchanged=mask)
    uplink = AirComp(convention="physical", time_offset=0.5, **FAST)
    got = received(uplink, air, SENT).mean["update"].double()
    for node in range(3):
        rows = np.flatnonzero(air.node == node)
        late = delays(air.stream.child("node", node), air.clients[rows], 0.5)
        sent = SENT[rows][:, mask[node]].double()
        sent += torch.from_numpy(late)[:, None] * steps(sent)
        expected = torch.from_numpy(air.weights[rows]) @ sent
        torch.testing.assert_close(got[node, mask[node]], expected, rtol=1e-4, atol=1e-5)
    assert (got[~mask] == 0).all()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    "options",
    [
        {"convention": "published"},
        {"convention": "physical", "elements_per_symbol": 2},
        {"convention": "physical", "csi_error": 0.02, "phase_error_deg": 10.0},
        {"convention": "mmse", "csi_error": 0.05},
    ],
)
def test_the_error_of_many_uploads_is_predicted(options):
    """80 uploads over the same channels, 40 of mmse: within 3 standard errors."""
    mask = (torch.arange(200) % 4 > 0).expand(3, -1)
    uplink = AirComp(time_offset=0.8, **FAST, **options)
    seeds = 40 if options["convention"] == "mmse" else 80
    air = air_round(snr_db=20.0, exchanged=mask)
    got = [
        received(uplink, replace(air, stream=Stream(seed, ("air",))), SENT, 9).metrics
        for seed in range(seeds)
    ]
    realised = np.array([metrics["air_error"] for metrics in got])
    standard, predicted = realised.std() / np.sqrt(seeds), got[0]["air_error_predicted"]
    assert standard < 0.15 * predicted
    assert realised.mean() == pytest.approx(predicted, abs=3 * standard)


@pytest.mark.parametrize("options", [{"convention": "physical"}, {"convention": "mmse"}])
def test_an_offset_of_nearly_zero_is_none(options):
    air = air_round(snr_db=10.0)
    plain, near = (
        received(AirComp(time_offset=offset, **FAST, **options), air, SENT)
        for offset in (0.0, 1e-9)
    )
    torch.testing.assert_close(near.mean["update"], plain.mean["update"], rtol=1e-5, atol=1e-5)
    assert near.metrics == pytest.approx(plain.metrics, rel=1e-4)


@pytest.mark.parametrize("convention", ["physical", "mmse", "one-bit"])
def test_results_do_not_depend_on_the_chunks(convention):
    air = air_round()
    uplink = AirComp(convention=convention, time_offset=0.3, **FAST)
    results = [received(uplink, air, SENT, chunk) for chunk in (1, 4, 9)]
    for result in results[1:]:
        torch.testing.assert_close(result.mean["update"], results[0].mean["update"])
        assert result.metrics == pytest.approx(results[0].metrics, rel=1e-4)


@pytest.mark.thorough(every=2)
def test_late_signs_make_more_votes_wrong():
    """60 uploads: within 10 % of the normal approximation, whose variance is over the elements."""
    air = air_round(snr_db=0.0)
    sent = updates()[:, :1000]
    chances = {}
    for offset in (0.0, 0.6):
        uplink = AirComp(convention="one-bit", time_offset=offset, **FAST)
        got = [
            received(uplink, replace(air, stream=Stream(seed, ("air",))), sent, 9).metrics
            for seed in range(60)
        ]
        realised = np.array([metrics["air_error_votes"] for metrics in got])
        assert realised.std() / np.sqrt(60) < 0.03 * realised.mean()
        chances[offset] = realised.mean()
        predicted = np.mean([metrics["air_error_votes_predicted"] for metrics in got])
        assert realised.mean() == pytest.approx(predicted, rel=0.1)
    assert chances[0.6] > 2 * chances[0.0]


def test_diverged_updates_are_received_as_nan():
    lost = SENT.clone()
    lost[0] = torch.nan
    got = received(AirComp(convention="physical", time_offset=0.3, **FAST), air_round(), lost)
    assert torch.isnan(got.mean["update"][0]).all()
    assert torch.isfinite(got.mean["update"][1:]).all()
    assert np.isnan(got.metrics["air_error"])


def test_runs_report_the_error_and_cost_the_same(config, toy, same):
    flags = {"uplink": "aircomp", "convention": "physical", "snr_db": 20.0, "rounds": 2}
    late = wirelessfl.run(config("hist", **flags, time_offset=0.5), data=toy)
    same(late, wirelessfl.run(config("hist", **flags, time_offset=0.5), data=toy))
    plain = wirelessfl.run(config("hist", **flags), data=toy)
    for row, other in zip(late.rows[1:], plain.rows[1:], strict=True):
        assert row["air_error"] == pytest.approx(row["air_error_predicted"], rel=0.5)
        assert row["air_error"] > 5 * other["air_error"]
        for name in ("sim_seconds", "uplink_mib", "joules"):
            assert row[name] == other[name]


def test_exact_sums_are_those_without_delays():
    """The mean of the rows stays that of what clients send: the error is relative to it."""
    air = air_round(snr_db=150.0)
    got = received(AirComp(convention="physical", time_offset=0.5, **FAST), air, SENT)
    error = (got.mean["update"] - exact(air, SENT)).double().square().mean().item() / 0.25
    assert got.metrics["air_error"] == pytest.approx(error, rel=1e-4)
