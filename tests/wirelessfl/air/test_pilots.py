"""Pilots in runs: their seconds and joules in rounds, prices, logs and requests, and the errors."""

from dataclasses import replace

import numpy as np
import pytest

import wirelessfl
from channels import Stream, estimation_error, section_vi_c
from tests.wirelessfl.air.uplinks.test_aircomp import NODE, air_round, received, updates
from wirelessfl.air.uplinks.aircomp import AirComp
from wirelessfl.base.errors import ConfigError

BAND, SYMBOLS, EDGES = 1e5, 1000, 3
UPLINKS = (
    {"uplink": "tdma"},
    {"uplink": "tdma", "order": "ready"},
    {"uplink": "ofdma"},
    {"uplink": "ofdma", "allocation": "optimal"},
    {"uplink": "ofdma", "energy_weight": 0.1},
    {"uplink": "aircomp", "convention": "physical"},
    {"uplink": "tdma", "failures": "outage", "csi_error": 0.1, "on_failure": "repeat"},
)


def settings(**others):
    """Three clients in each of two cells take part."""
    return wirelessfl.Config.from_flags(
        "hfedavg", clients=8, cells=2, clients_per_round=6, rounds=2, edge_rounds=EDGES,
        bandwidth_hz=BAND, dataset="digits", **others,
    )  # fmt: skip


@pytest.mark.parametrize("coherence", ["round", "edge-round"])
@pytest.mark.parametrize("uplink", UPLINKS, ids=lambda uplink: "-".join(map(str, uplink.values())))
def test_a_round_takes_longer_by_the_pilots_of_its_blocks(uplink, coherence):
    """n N / B seconds and P N / B joules a client and block, in every access."""
    plain, more = (
        wirelessfl.price(settings(coherence=coherence, pilot_symbols=count, **uplink))
        for count in (0, SYMBOLS)
    )
    blocks = EDGES if coherence == "edge-round" else 1
    seconds = blocks * 3 * SYMBOLS / BAND
    np.testing.assert_allclose(more.seconds - plain.seconds, seconds, rtol=1e-9)
    joules = blocks * 6 / 8 * 0.1 * SYMBOLS / BAND
    np.testing.assert_allclose(more.joules - plain.joules, joules, rtol=1e-6)


def test_deadlines_bands_and_designs_see_pilots():
    """A deadline that leaves less time costs more energy, and one that leaves none is refused."""
    limit = {"uplink": "ofdma", "round_deadline": 30.0}
    plain = wirelessfl.price(settings(**limit))
    more = wirelessfl.price(settings(pilot_symbols=300_000, **limit))
    np.testing.assert_allclose(more.seconds, 30.0)
    pilots = 6 / 8 * 0.1 * 300_000 / BAND
    assert (more.joules - pilots > 1.1 * plain.joules).all()
    with pytest.raises(ConfigError, match="round_deadline is 30"):
        wirelessfl.price(settings(pilot_symbols=10**6, **limit))


@pytest.mark.parametrize("uplink", [UPLINKS[0], UPLINKS[3]])
def test_many_networks_are_priced_as_one_by_one(uplink):
    """Bands and powers differ, and so do the seconds and joules of the same pilots."""
    config = wirelessfl.Config.from_flags(
        "hfedavg", clients_per_round=6, rounds=2, edge_rounds=EDGES, dataset="digits",
        pilot_symbols=SYMBOLS, **uplink,
    )  # fmt: skip
    base = section_vi_c(cells=2, clients=8, stream=Stream(1))
    networks = [
        replace(base, bandwidth_hz=band, transmit_power_w=watts)
        for band, watts in ((1e5, 0.1), (4e5, 0.05), (9e5, 0.2))
    ]
    together = wirelessfl.price(config, network=networks)
    for number, network in enumerate(networks):
        alone = wirelessfl.price(config, network=network)
        np.testing.assert_allclose(np.diff(together.seconds[number]), alone.seconds, rtol=1e-9)
        np.testing.assert_allclose(np.diff(together.joules[number]), alone.joules, rtol=1e-9)


def test_the_seconds_of_the_client_log_sum_to_the_round(tmp_path):
    """Pilots are a part of what precedes local training; their energy is one of sending."""
    logs = []
    for count in (0, SYMBOLS):
        out = tmp_path / str(count)
        config = settings(
            uplink="tdma", pilot_symbols=count, client_log=True, out=str(out), local_steps=1
        )
        result = wirelessfl.run(config)
        logs.append(wirelessfl.read_client_log(out))
        rounds = np.diff([row["sim_seconds"] for row in result.rows], prepend=0.0)[-2:]
        seconds = [logs[-1].seconds[logs[-1]["round"] == number] for number in (1, 2)]
        for duration, of_clients in zip(rounds, seconds, strict=True):
            np.testing.assert_allclose(of_clients, duration, rtol=1e-9)
    plain, more = logs
    np.testing.assert_allclose(more["download_seconds"], 3 * SYMBOLS / BAND)
    np.testing.assert_allclose(more["send_joules"] - plain["send_joules"], 0.1 * SYMBOLS / BAND)
    assert (more["compute_joules"] == plain["compute_joules"]).all()


@pytest.mark.parametrize(
    "schedule",
    [
        {"schedule": "buffered", "requests": 1, "buffer": 1},
        {"schedule": "simultaneous", "clients_per_round": 1},
    ],
)
def test_an_upload_at_any_time_follows_its_pilots(schedule):
    """One client at a time: each update takes N / B seconds longer."""
    common = {"clients": 4, "rounds": 6, "bandwidth_hz": BAND, "dataset": "digits"}
    plain, more = (
        wirelessfl.price(
            wirelessfl.Config.from_flags("fedast", pilot_symbols=count, **common, **schedule)
        )
        for count in (0, SYMBOLS)
    )
    np.testing.assert_allclose(more.seconds - plain.seconds, SYMBOLS / BAND, rtol=1e-9)
    np.testing.assert_allclose(more.joules - plain.joules, 0.1 * SYMBOLS / BAND / 4, rtol=1e-9)


def test_simultaneous_senders_of_requests_send_their_pilots_in_turn():
    common = {
        "clients": 4,
        "rounds": 2,
        "dataset": "digits",
        "schedule": "buffered",
        "uplink": "aircomp",
        "requests": 4,
        "buffer": 4,
        "bandwidth_hz": BAND,
    }
    plain, more = (
        wirelessfl.price(wirelessfl.Config.from_flags("fedast", pilot_symbols=count, **common))
        for count in (0, SYMBOLS)
    )
    assert more.seconds[0] - plain.seconds[0] == pytest.approx(4 * SYMBOLS / BAND)
    assert more.joules[0] - plain.joules[0] == pytest.approx(0.1 * SYMBOLS / BAND)


def test_pilots_buy_the_errors_of_sums():
    """The error of an estimate from pilots at each client's SNR is that of the same csi_error."""
    loss = np.full(len(NODE), -7.0)
    air, sent = air_round(path_gain_db=loss), updates()
    power = 10 ** ((10.0 - 7.0) / 10)
    for count in (1, 20):
        pilots = received(AirComp(csi_error=None), replace(air, pilot_symbols=count), sent)
        ratio = float(estimation_error(count, power))
        given = received(AirComp(csi_error=ratio), air, sent)
        assert pilots.metrics == pytest.approx(given.metrics, rel=1e-6)
    endless = received(AirComp(csi_error=None), replace(air, pilot_symbols=10**9), sent)
    exact = received(AirComp(), air, sent)
    assert endless.metrics == pytest.approx(exact.metrics, rel=1e-3)
    stated = received(AirComp(csi_error=0.0), replace(air, pilot_symbols=1), sent)
    assert stated.metrics == exact.metrics


def test_a_given_error_holds_and_a_stored_run_keeps_its_own(tmp_path):
    over = {"uplink": "aircomp", "convention": "physical", "local_steps": 1, "rounds": 1}
    base = {**over, "dataset": "digits", "clients": 4}
    free = wirelessfl.Config.from_flags("fedavg", pilot_symbols=2, **base)
    assert free.uplink.csi_error is None
    kept = wirelessfl.Config.from_flags("fedavg", pilot_symbols=2, csi_error=0.0, **base)
    assert kept.uplink.csi_error == 0
    assert wirelessfl.Config.from_flags("fedavg", **base).uplink.csi_error == 0
    errors = [
        wirelessfl.run(wirelessfl.Config.from_flags("fedavg", pilot_symbols=n, **base)).rows[-1]
        for n in (0, 2, 10**8)
    ]
    none, few, many = (row["air_error_predicted"] for row in errors)
    assert many == pytest.approx(none, rel=1e-3)
    assert few > 1.01 * none
    out = tmp_path / "run"
    wirelessfl.run(wirelessfl.Config.from_flags("fedavg", pilot_symbols=2, out=str(out), **base))
    assert wirelessfl.load(out).config.uplink.csi_error is None


def test_wired_links_have_no_pilots():
    with pytest.raises(ConfigError, match=r'pilot_symbols=5 conflicts with uplink "fixed"'):
        wirelessfl.Config.from_flags("fedavg", uplink="fixed", pilot_symbols=5)
