"""AirComp with least mean squared error: received sums and errors against formulas."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import wirelessfl
from channels import Network
from channels.streams import Stream
from solvers import align_transmitters
from tests.wirelessfl.air.uplinks.test_aircomp import ELEMENTS, NODE, air_round, exact, received
from tests.wirelessfl.air.uplinks.test_aircomp import updates as independent
from wirelessfl.air.uplinks.aircomp import AirComp
from wirelessfl.config import Config
from wirelessfl.training.workers.shards import Shards

MMSE = AirComp(convention="mmse", beamformer_starts=4)
FAST = AirComp(convention="mmse")


def updates(elements=ELEMENTS):
    """Updates that are correlated between clients, and of unequal size."""
    sent = independent()[:, :elements]
    return sent + 0.5 * sent.roll(1, 0) + 0.2


def one_antenna(**more):
    """An upload in which fast exact solutions exist."""
    air = air_round(**more)
    network = Network.from_snr(NODE, cpu_hz=1e9, snr_db=air.draw.network.snr_db, antennas=1)
    return replace(air, draw=network.draw(Stream(1)))


def by_hand(air, sent, node, per_symbol=1):
    """Gains relative to the weights, and noise variance, of ``align_transmitters`` at a node."""
    own = air.node == node
    rms = sent[own].double().square().mean(1).sqrt().numpy() / air.units["update"]
    h, q = air.draw.h[own], air.weights_of("update")[own] * rms
    found = align_transmitters(h, q, np.sqrt(air.draw.snr[own] / per_symbol), 0.5)
    gains = (h @ found.value.receive.conj() * found.value.transmit).real
    ratio = np.divide(gains, q, out=np.ones_like(q), where=q > 0)
    return ratio, 0.5 * np.linalg.norm(found.value.receive) ** 2


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("per_symbol", [1, 2])
def test_clients_arrive_with_the_weights_of_least_error(per_symbol):
    """The received sum is that of the solver's gains, plus noise of the beamformer's variance."""
    air, sent = air_round(snr_db=-5.0), updates()
    uplink = replace(MMSE, elements_per_symbol=per_symbol)
    got = received(uplink, air, sent)
    predicted, realised = [], []
    for node in range(3):
        ratio, noise = by_hand(air, sent, node, per_symbol)
        assert (ratio < 0.9).any()  # of clients in a fade
        weights = torch.from_numpy(ratio).float()[:, None]
        own = torch.from_numpy(air.node == node)
        scaled = sent.clone()
        scaled[own] *= weights
        mean = got.mean["update"][node].double()
        added = mean - exact(air, scaled)[node]
        # The standard error of a variance over 4000 elements is 2.2 %.
        assert added.var() == pytest.approx(0.25 * noise, rel=0.1)
        assert abs(added.mean()) < 0.1 * added.std()
        bias = (exact(air, scaled) - exact(air, sent))[node].double().square().mean() / 0.25
        predicted.append(noise + float(bias))
        realised.append(float((mean - exact(air, sent)[node]).square().mean() / 0.25))
    assert got.metrics["air_error_predicted"] == pytest.approx(np.mean(predicted), rel=0.01)
    assert got.metrics["air_error"] == pytest.approx(np.mean(realised), rel=1e-4)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"csi_error": 0.05},
        {"phase_error_deg": 20.0},
        {"csi_error": 0.02, "phase_error_deg": 20.0, "elements_per_symbol": 2},
    ],
)
def test_predicted_error_equals_the_mean_over_many_uploads(options):
    """The mean error of 80 uploads is predicted within 3 standard errors."""
    uplink, air, sent = replace(FAST, **options), one_antenna(snr_db=10.0), updates(200)
    got = [
        received(uplink, replace(air, stream=Stream(seed, ("air",))), sent, 9).metrics
        for seed in range(80)
    ]
    realised = np.array([metrics["air_error"] for metrics in got])
    standard = realised.std() / np.sqrt(len(realised))
    predicted = got[0]["air_error_predicted"]
    assert standard < 0.12 * predicted
    assert realised.mean() == pytest.approx(predicted, abs=3 * standard)


@pytest.mark.parametrize("snr_db", [-20.0, 0.0, 20.0])
def test_no_error_of_uncorrelated_updates_is_above_that_of_channel_inversion(snr_db):
    """It is also the solver's objective, which is below that of sending nothing."""
    air = air_round(snr_db=snr_db)
    sent = torch.linalg.qr(independent().T).Q.T * np.sqrt(ELEMENTS)
    errors = {
        name: received(AirComp(convention=name), air, sent).metrics["air_error_predicted"]
        for name in ("mmse", "physical", "published")
    }
    assert errors["mmse"] <= errors["physical"] * (1 + 1e-4) <= errors["published"]
    nothing = np.bincount(NODE, (air.weights / 0.5) ** 2).mean()
    assert errors["mmse"] < nothing
    if snr_db == 20.0:
        assert errors["mmse"] == pytest.approx(errors["physical"], rel=0.02)
    elif snr_db == -20.0:
        assert errors["mmse"] < 0.2 * errors["physical"]


@pytest.mark.thorough
def test_what_updates_have_in_common_counts_more_if_they_are_correlated():
    """Equal updates: their bias is 0 with ``unbiased_sum``, and falls with the correlation."""
    air, sent = one_antenna(snr_db=-10.0), updates(200)[:1].repeat(9, 1)
    bias, errors = {}, {}
    for name, options in {
        "free": {},
        "correlated": {"correlation": 0.9},
        "unbiased": {"unbiased_sum": True},
    }.items():
        uplink = replace(FAST, **options)
        got = [
            received(uplink, replace(air, stream=Stream(seed, ("air",))), sent)
            for seed in range(40)
        ]
        mean = torch.stack([one.mean["update"] for one in got]).mean(0)
        gains = (mean * exact(air, sent)).sum(1) / exact(air, sent).square().sum(1)
        bias[name] = float((gains - 1).abs().max())
        errors[name] = got[0].metrics["air_error_predicted"]
    assert bias["unbiased"] < 0.06 < bias["correlated"] < 0.9 * bias["free"]
    assert errors["correlated"] < errors["free"]


@pytest.mark.parametrize(
    "options", [{}, {"elements_per_symbol": 2, "csi_error": 0.01, "phase_error_deg": 5.0}]
)
def test_results_do_not_depend_on_the_chunks(options):
    air, sent = one_antenna(), updates(100)
    results = [received(replace(FAST, **options), air, sent, chunk) for chunk in (1, 4, 9)]
    for result in results[1:]:
        torch.testing.assert_close(result.mean["update"], results[0].mean["update"])
        assert result.metrics == pytest.approx(results[0].metrics, rel=1e-4)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("options", [{}, {"csi_error": 0.1, "phase_error_deg": 5.0}])
@pytest.mark.parametrize("make", [air_round, one_antenna])
def test_clients_that_send_nothing_change_nothing(make, options):
    """Silent clients, and clients of zero updates: the others' sum is that without them."""
    uplink, air, sent = replace(MMSE, **options), make(snr_db=0.0), updates(50)
    quiet = np.array([0, 1, 0, 0, 1, 1, 0, 0, 0], dtype=bool)
    sums = np.bincount(NODE, np.where(quiet, 0.0, air.weights))
    others = ~quiet
    without = replace(
        air,
        node=NODE[others],
        clients=np.flatnonzero(others),
        weights=(air.weights / np.where(sums > 0, sums, 1)[NODE])[others],
    )
    expected = received(uplink, without, sent[torch.from_numpy(others)])
    silent = received(uplink, replace(air, silent={"update": quiet}), sent)
    torch.testing.assert_close(silent.mean["update"], expected.mean["update"], rtol=1e-4, atol=1e-5)
    assert silent.metrics == pytest.approx(expected.metrics, rel=1e-3)
    assert (expected.mean["update"][1] == 0).all()
    zeros = sent.clone()
    zeros[torch.from_numpy(quiet)] = 0
    found = received(uplink, air, zeros)
    assert (found.mean["update"][1] == 0).all()
    assert torch.isfinite(found.mean["update"]).all()
    nothing = received(uplink, air, 0 * sent)
    assert (nothing.mean["update"] == 0).all()
    assert nothing.metrics == {"air_error": 0, "air_error_predicted": 0}


def test_a_client_without_a_channel_does_not_arrive():
    """The error is that of leaving it out of the sum."""
    air, sent = one_antenna(snr_db=150.0), updates(100)
    h = air.draw.h.copy()
    h[5] = 0
    got = received(FAST, replace(air, draw=replace(air.draw, h=h)), sent)
    heard = torch.arange(len(NODE)) != 5
    expected = exact(air, sent * heard[:, None])
    torch.testing.assert_close(got.mean["update"], expected, rtol=1e-4, atol=1e-4)


def test_diverged_updates_are_received_as_nan():
    lost = updates(50)
    lost[0] = torch.nan
    lost[8] = torch.inf
    got = received(FAST, one_antenna(), lost)
    assert torch.isnan(got.mean["update"][[0, 2]]).all()
    assert torch.isfinite(got.mean["update"][1]).all()
    assert np.isnan(got.metrics["air_error"])


def test_unsent_elements_are_received_as_zero():
    mask = torch.ones(3, 200, dtype=torch.bool)
    mask[0, 100:150], mask[2, ::2] = False, False
    air, sent = one_antenna(exchanged=mask, snr_db=0.0), updates(200)
    for options in ({}, {"csi_error": 0.1, "phase_error_deg": 5.0}):
        got = received(replace(FAST, **options), air, sent)
        assert (got.mean["update"][~mask] == 0).all()
        each = (got.mean["update"] - exact(air, sent) * mask).double().square().sum(1)
        expected = (each / mask.sum(1)).mean().item() / 0.25
        assert got.metrics["air_error"] == pytest.approx(expected, rel=1e-5)


def test_the_power_limit_holds_while_a_client_sends():
    """Clients that send half of their node's elements have half of the SNR per element."""
    sent, elements = updates(200), np.full(len(NODE), 100)
    half = received(FAST, replace(one_antenna(snr_db=0.0), lengths=elements), sent)
    weak = received(FAST, one_antenna(snr_db=-10 * np.log10(2)), sent)
    assert half.metrics == pytest.approx(weak.metrics, rel=1e-4)


def test_runs_report_their_error_and_are_reproducible(config, toy, same):
    flags = {"uplink": "aircomp", "snr_db": 0.0, "convention": "mmse", "rounds": 2, "antennas": 2}
    whole = wirelessfl.run(config("hist", **flags), data=toy)
    same(whole, wirelessfl.run(config("hist", **flags), data=toy))
    for row in whole.rows[1:]:
        assert row["air_error"] == pytest.approx(row["air_error_predicted"], rel=0.3)
    inverted = wirelessfl.run(config("hist", **flags | {"convention": "physical"}), data=toy)
    for row, other in zip(whole.rows, inverted.rows, strict=True):
        for name in ("sim_seconds", "uplink_mib", "downlink_mib"):
            assert row[name] == other[name]
    assert whole.rows[-1]["joules"] > inverted.rows[-1]["joules"]
    assert whole.rows[-1]["air_error"] < inverted.rows[-1]["air_error"]


def test_all_nodes_are_solved_in_one_call(monkeypatch):
    """Starts are those of the setting; the search goes without a bound."""
    from solvers.access import least_error

    calls = []

    def solve(h, *args, **kwargs):
        calls.append((h.shape, kwargs))
        return align_transmitters(h, *args, **kwargs)

    monkeypatch.setattr(least_error, "align_transmitters", solve)
    received(MMSE, air_round(), updates(20))
    free = {"correlation": 0.0, "unbiased_sum": False}
    assert calls == [((3, 4, 4), {"certificate": None, "starts": 4, **free})]


def test_a_process_without_clients_receives_the_others_sums():
    """Its own part of the misalignment is 0; all processes go through the same sums."""

    class Counted(Shards):
        sums = 0

        def sum(self, value):
            Counted.sums += 1
            return super().sum(value)

    air, counts = one_antenna(), []
    for options in ({}, {"csi_error": 0.1}):
        for clients in (9, 0):
            Counted.sums = 0
            reception = replace(FAST, **options).receive(air)
            if clients:
                reception.add(slice(0, 9), {"update": updates(20)})
            reception.finish(Counted(), ["update"], torch.zeros(3, 20))
            counts.append(Counted.sums)
    assert counts[0] == counts[1]
    assert counts[2] == counts[3]


def test_the_beamformer_is_not_a_setting_of_least_error():
    made = Config.from_flags("hist", uplink="aircomp", convention="mmse", beamformer_starts=3)
    assert made.uplink.beamformer_starts == 3
    assert "beamformer" not in made.tables["uplink"]
