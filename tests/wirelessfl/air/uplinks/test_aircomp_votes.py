"""One-bit votes over the air: what nodes receive, how often votes are wrong, and what they cost."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm

import wirelessfl
from channels import Load, Network, transmit_scales
from channels.streams import Stream
from solvers import optimize_beamformer
from tests.wirelessfl.air.uplinks.test_aircomp import NODE, air_round, exact, received, updates
from wirelessfl.air.uplinks.aircomp import AirComp
from wirelessfl.runs.build import build
from wirelessfl.training.workers.shards import Shards

VOTES = ("majority", "one-bit")
SENT = updates()[:, :300]


def scales(air, sent):
    """Weighted mean magnitudes [nodes]."""
    sizes = air.weights * sent.abs().double().mean(1).numpy()
    return np.bincount(air.node, sizes)


def equal_weights(air):
    return replace(air, weights=1 / np.bincount(air.node)[air.node])


def many(uplink, sent, seeds, snr_db, **more):
    """Metrics of uploads with channels of their own."""
    return [
        received(uplink, equal_weights(air_round(seed=seed, snr_db=snr_db, **more)), sent).metrics
        for seed in range(seeds)
    ]


@pytest.mark.parametrize("convention", VOTES)
def test_a_node_receives_signs_times_the_mean_magnitude(convention):
    air = air_round()
    mean = received(AirComp(convention=convention), air, SENT).mean["update"].double()
    expected = np.repeat(scales(air, SENT)[:, None], SENT.shape[1], 1)
    np.testing.assert_allclose(mean.abs(), expected, rtol=1e-6)


@pytest.mark.parametrize("convention", VOTES)
def test_a_client_alone_without_noise_sends_its_own_signs(convention):
    rows = np.array([0, 4, 6])
    air = air_round(snr_db=200.0)
    alone = replace(air, node=NODE[rows], clients=rows, weights=np.ones(3))
    metrics = received(AirComp(convention=convention), alone, SENT[rows]).metrics
    mean = received(AirComp(convention=convention), alone, SENT[rows]).mean["update"]
    expected = SENT[rows].sign() * SENT[rows].abs().mean(1, keepdim=True)
    torch.testing.assert_close(mean, expected)
    error = (expected - SENT[rows]).double().square().mean().item() / 0.25
    assert metrics["air_error"] == pytest.approx(error, rel=1e-5)
    assert metrics["air_error_predicted"] == pytest.approx(error, rel=1e-5)
    assert metrics["air_error_votes"] == 0
    assert metrics["air_error_votes_predicted"] < 1e-12


def test_without_noise_the_sign_of_a_sum_is_the_weighted_majority():
    air = air_round(snr_db=200.0)
    got = received(AirComp(convention="one-bit"), air, SENT)
    majority = exact(air, SENT.sign()).sign()
    torch.testing.assert_close(got.mean["update"].sign(), majority)
    assert got.metrics["air_error_votes"] == got.metrics["air_error_votes_predicted"] == 0


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize("snr_db", [-10.0, 10.0])
def test_votes_by_energy_are_wrong_as_often_as_predicted(snr_db):
    """Over 150 draws of the channels, also the mean squared error; 3 standard errors."""
    got = many(AirComp(convention="majority"), SENT[:, :60], 150, snr_db)
    for name in ("air_error_votes", "air_error"):
        realised = np.array([metrics[name] for metrics in got])
        predicted = got[0][f"{name}_predicted"]
        standard = realised.std() / np.sqrt(len(realised))
        assert standard < 0.05 * predicted
        assert realised.mean() == pytest.approx(predicted, abs=3 * standard)


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize("per_symbol", [1, 2])
def test_signs_of_sums_are_wrong_with_the_tail_of_the_noise(per_symbol):
    """Given the channels: Q(|sum q_i v_i| / sigma), sigma^2 = 1 / (2 nu^2) of a beamformer."""
    air = equal_weights(air_round(snr_db=-12.0))
    uplink = AirComp(convention="one-bit", elements_per_symbol=per_symbol)
    sent, votes = updates(), exact(air, updates().sign())
    chances = []
    for node in range(3):
        rows = air.node == node
        h, q = air.draw.h[rows], air.weights[rows]
        unit = transmit_scales(
            q, 1.0, snr_db=-12.0, convention="physical", elements_per_symbol=per_symbol
        )
        sigma = np.sqrt(0.5 / optimize_beamformer(h, scales=unit).objective)
        amplitude = votes[node].abs().double().numpy()
        chances.append(norm.sf(amplitude[amplitude > 1e-6] / sigma).mean())
    got = received(uplink, air, sent).metrics
    assert got["air_error_votes_predicted"] == pytest.approx(np.mean(chances), rel=0.01)
    # 12,000 votes: the standard error is at most 0.005.
    assert got["air_error_votes"] == pytest.approx(np.mean(chances), abs=0.015)
    assert got["air_error"] == pytest.approx(got["air_error_predicted"], rel=0.02)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    "options", [{"csi_error": 0.1}, {"csi_error": 0.05, "elements_per_symbol": 2}]
)
def test_channel_errors_make_more_votes_wrong(options):
    """Over 100 draws of the errors, from one draw of the channels; 3 standard errors."""
    air = equal_weights(air_round(snr_db=0.0))
    uplink, sent = AirComp(convention="one-bit", beamformer_starts=1, **options), SENT[:, :100]
    got = [
        received(uplink, replace(air, stream=Stream(seed, ("air",))), sent).metrics
        for seed in range(100)
    ]
    realised = np.array([metrics["air_error_votes"] for metrics in got])
    standard, predicted = realised.std() / np.sqrt(100), got[0]["air_error_votes_predicted"]
    assert standard < 0.15 * predicted
    assert realised.mean() == pytest.approx(predicted, abs=3 * standard)


@pytest.mark.parametrize("convention", VOTES)
def test_results_do_not_depend_on_the_chunks(convention):
    air = air_round()
    results = [received(AirComp(convention=convention), air, SENT, chunk) for chunk in (1, 4, 9)]
    for result in results[1:]:
        assert torch.equal(result.mean["update"], results[0].mean["update"])
        assert result.metrics == pytest.approx(results[0].metrics, rel=1e-6)


@pytest.mark.parametrize("convention", VOTES)
def test_unsent_elements_are_received_as_zero(convention):
    mask = torch.ones(3, 300, dtype=torch.bool)
    mask[0, 100:150], mask[2, ::2] = False, False
    air = air_round(exchanged=mask)
    got = received(AirComp(convention=convention), air, SENT)
    assert (got.mean["update"][~mask] == 0).all()
    sent = (SENT * mask[air.node]).abs().double().sum(1).numpy() / mask.sum(1).numpy()[air.node]
    expected = np.bincount(air.node, air.weights * sent)
    np.testing.assert_allclose(got.mean["update"].abs().amax(1), expected, rtol=1e-6)
    error = (got.mean["update"] - exact(air, SENT) * mask).double().square().sum(1) / mask.sum(1)
    assert got.metrics["air_error"] == pytest.approx(error.mean().item() / 0.25, rel=1e-5)


@pytest.mark.parametrize("convention", VOTES)
def test_diverged_and_vanished_updates(convention):
    lost = SENT.clone()
    lost[0], lost[8, :5] = torch.nan, torch.inf
    got = received(AirComp(convention=convention), air_round(), lost)
    assert not torch.isfinite(got.mean["update"][[0, 2]]).any()
    assert torch.isfinite(got.mean["update"][1]).all()
    assert np.isnan(got.metrics["air_error"])
    nothing = received(AirComp(convention=convention), air_round(), 0 * SENT)
    assert (nothing.mean["update"] == 0).all()
    assert set(nothing.metrics.values()) == {0.0}


def test_an_uplink_of_votes_without_senders():
    air = air_round()
    none = replace(
        air,
        node=NODE[:0],
        clients=np.arange(0),
        weights=np.zeros(0),
        draw=air.draw.of(np.arange(0)),
    )
    for convention in VOTES:
        got = received(AirComp(convention=convention), none, SENT[:0])
        assert (got.mean["update"] == 0).all()
        assert np.isnan(got.metrics["air_error"])


def test_a_process_without_clients_decides_the_same_votes():
    """Its signs are 0 in the sum over the processes, and all take part in the same sums."""

    class Counted(Shards):
        sums = 0

        def sum(self, value):
            Counted.sums += 1
            return super().sum(value)

    for convention in VOTES:
        counts = []
        for clients in (9, 0):
            Counted.sums = 0
            reception = AirComp(convention=convention).receive(air_round())
            if clients:
                reception.add(slice(0, 9), {"update": SENT})
            reception.finish(Counted(), ["update"], torch.zeros(3, 300))
            counts.append(Counted.sums)
        assert counts[0] == counts[1]


def test_a_vote_by_energy_takes_two_symbols_per_element(config):
    """Seconds, joules and bytes: equal weights vote at full power, others at q_i / max q of it."""
    physical, one_bit, majority = (
        build(
            config("hist", uplink="aircomp", cycles_per_step=1.0, convention=convention)
        ).planner.plan(0)
        for convention in ("physical", "one-bit", "majority")
    )
    np.testing.assert_allclose(majority.price.seconds, 2 * physical.price.seconds, rtol=1e-6)
    np.testing.assert_array_equal(one_bit.price.seconds, physical.price.seconds)
    np.testing.assert_array_equal(one_bit.price.joules, physical.price.joules)
    # An element is a bit, and the magnitude has 32 bits, as the scale has in each edge round.
    scales = 5 * 4 / 2**20
    one, all_bits = majority.price.uplink_mib - scales, physical.price.uplink_mib - scales
    assert 32 * one == pytest.approx(all_bits, rel=1e-9)
    assert one_bit.price.uplink_mib == majority.price.uplink_mib
    served = majority.price.served
    powers = served.service.decision.powers_w
    np.testing.assert_allclose(powers, served.draws.network.transmit_power_w * np.ones_like(powers))
    assert served.service.decision.beamformers is None


def test_votes_count_by_their_weights():
    """With power in proportion to the weights, half the weight is half the energy."""
    network = Network.from_snr(np.zeros(3, int), cpu_hz=1e9, snr_db=10.0, antennas=4)
    uplink = AirComp(convention="majority")
    load = Load(0.0, 10.0, weights=[1.0, 2.0, 4.0])
    powers = uplink.access.serve(load, network.draw(Stream(1))).decision.powers_w
    np.testing.assert_allclose(powers / network.transmit_power_w, [0.25, 0.5, 1.0])
    heavy, sent = 0, torch.tensor([[1.0], [1.0], [-1.0]]).repeat(1, 50)
    for seed in range(100):
        air = replace(
            air_round(seed=seed),
            nodes=1,
            node=np.zeros(3, int),
            clients=np.arange(3),
            weights=np.array([0.1, 0.1, 0.8]),
            draw=network.draw(Stream(seed)),
        )
        reception = uplink.receive(air)
        reception.add(slice(0, 3), {"update": sent})
        reception.finish(Shards(), ["update"], torch.zeros(1, 50))
        heavy += (reception.result().mean["update"] < 0).double().mean().item()
    assert heavy > 95  # two of three clients vote for +1


@pytest.mark.parametrize("convention", VOTES)
@pytest.mark.parametrize("algorithm", ["hist", "fedavg"])
def test_runs_report_their_errors_and_are_reproducible(algorithm, convention, config, toy, same):
    flags = {"uplink": "aircomp", "convention": convention, "snr_db": 0.0, "rounds": 2}
    whole = wirelessfl.run(config(algorithm, **flags), data=toy)
    same(whole, wirelessfl.run(config(algorithm, **flags), data=toy))
    for row in whole.rows[1:]:
        assert row["air_error"] == pytest.approx(row["air_error_predicted"], rel=0.3)
        assert 0 <= row["air_error_votes"] < 0.4
        assert 0 <= row["air_error_votes_predicted"] < 0.4


def test_clients_in_a_fade_stay_silent_and_are_counted(config, toy):
    flags = {"uplink": "aircomp", "convention": "one-bit", "snr_db": 0.0, "rounds": 3}
    truncated = wirelessfl.run(config("fedavg", **flags, antennas=1, threshold=0.5), data=toy)
    assert sum(row["silent"] for row in truncated.rows) > 0
