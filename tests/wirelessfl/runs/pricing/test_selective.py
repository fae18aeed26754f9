"""Channels that differ over the band: prices, and who refuses them."""

from dataclasses import replace

import numpy as np
import pytest

import channels
import solvers
import wirelessfl
from channels import DelayProfile, Load, Stream
from wirelessfl.air.delivery import delivered
from wirelessfl.air.failures import Waterfall
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli.budget import budget_of
from wirelessfl.runs.build.planners import planner_without_data
from wirelessfl.runs.folder.identity import network_hash

SMALL = {"clients": 6, "rounds": 3, "antennas": 2}
WIDE = {"delay_spread_ns": 300.0, "subcarriers": 8}


def config(algorithm="fedavg", **flags):
    return wirelessfl.Config.from_flags(algorithm, **SMALL | flags)


@pytest.mark.parametrize("uplink", ["tdma", "ofdma"])
def test_one_subcarrier_costs_what_a_flat_channel_costs(uplink):
    """To the bit; with several, a round lasts as long as its sums over them say."""
    flat = wirelessfl.price(config(uplink=uplink))
    one = wirelessfl.price(config(uplink=uplink, delay_spread_ns=300.0, subcarriers=1))
    assert one.rows == flat.rows
    settings = config(uplink=uplink, **WIDE)
    planner = planner_without_data(settings)
    draws = planner.plan(0).draws
    snr = 10 ** (draws.network.snr_db / 10) * draws.gain[0]
    n = 1 if uplink == "tdma" else 6
    capacity = np.log2(1 + n * snr[:, None] * draws.spectrum[0]).mean(-1) / n
    seconds = planner.plan(0).price.served.load.bits / (9e6 * capacity) * (6 / n)
    compute = planner.plan(0).price.served.load.cycles / draws.network.cpu_hz
    price = wirelessfl.price(settings)
    assert price.seconds[0] == pytest.approx((seconds + compute).max(), rel=1e-9)
    assert price.rows[-1]["sim_seconds"] != flat.rows[-1]["sim_seconds"]


REFUSED = [
    ({"uplink": "aircomp"}, 'uplink "aircomp" as set needs .* choose uplink "tdma"'),
    ({"uplink": "ofdma", "allocation": "optimal"}, 'uplink "ofdma" as set needs'),
    ({"uplink": "ofdma", "energy_weight": 0.1}, 'uplink "ofdma" as set needs'),
    ({"failures": "outage"}, 'failures "outage" needs .* choose failures "waterfall"'),
]


@pytest.mark.parametrize(("flags", "message"), REFUSED)
def test_decisions_and_sums_need_flat_channels(flags, message):
    """Run, price and design; the link budget has no failures. One subcarrier is flat."""
    settings = config(**WIDE, **flags)
    calls = [
        lambda: wirelessfl.price(settings),
        lambda: wirelessfl.run(settings),
        lambda: planner_without_data(settings),
    ]
    if "failures" not in flags:
        calls.append(lambda: budget_of(settings, 1.0))
    for call in calls:
        with pytest.raises(ConfigError, match=message):
            call()
    assert wirelessfl.price(config(**WIDE | {"subcarriers": 1}, **flags)).rows


def test_uploads_at_any_time_need_flat_channels():
    for schedule in ("buffered", "simultaneous"):
        with pytest.raises(ConfigError, match=r'at any time need .* choose schedule "rounds"'):
            wirelessfl.price(config(schedule=schedule, **WIDE))


def test_taps_are_rayleigh():
    with pytest.raises(ConfigError, match=r"taps have the fading Rician.* choose fading rayleigh"):
        wirelessfl.price(config(delay_spread_ns=30.0, fading="rician"))


def selective(seed, **changes):
    network = channels.umi(cells=1, clients=6, stream=Stream(seed))
    return replace(network, fading=DelayProfile(100e-9, "tdl-a", 8), **changes)


def test_prices_of_networks_are_those_of_each():
    objects = [selective(number) for number in range(2)]
    plain = wirelessfl.Config.from_flags("fedavg", rounds=3, uplink="ofdma")
    together = wirelessfl.price(plain, network=objects)
    for number, network in enumerate(objects):
        alone = wirelessfl.price(plain, network=network)
        assert together.rows_of(number)[-1]["sim_seconds"] == alone.rows[-1]["sim_seconds"]


def test_a_network_given_as_an_object_is_refused_alike():
    settings = wirelessfl.Config.from_flags("fedavg", rounds=3, uplink="aircomp")
    with pytest.raises(ConfigError, match=r'^uplink "aircomp" as set needs'):
        wirelessfl.price(settings, network=selective(1))


def test_the_hash_of_a_network_covers_its_spectrum():
    """Recordings that differ only in how power is spread over the band."""
    gain = np.full((1, 3, 4), 1e-9)
    other = gain * [0.5, 1.5, 0.5, 1.5]
    hashes = {
        network_hash(channels.Network([0] * 3, cpu_hz=1e9, **links), Stream(1))
        for links in (channels.Recorded.of_gains(g).links for g in (gain, other))
    }
    assert len(hashes) == 2


def test_moving_clients_have_taps_that_move():
    """Still clients keep their channels; others do not, and designs take independent blocks."""
    walk = {"layout": "disc", "mobility": "waypoint", "speed_doppler": "jakes", "path_loss": "umi"}
    for kmh, moves in ((0.0, False), (30.0, True)):
        planner = planner_without_data(config(**WIDE, **walk, speed_kmh=(kmh,)))
        spectra = [planner.plan(number).draws.spectrum for number in range(2)]
        assert np.allclose(*spectra) != moves
    sampled = planner.sampling(Stream(5), 4).network.fading.fading
    assert type(sampled.taps) is channels.Rayleigh


def test_packets_fail_by_the_capacity_of_the_band():
    """With a spectrum, the SNR of a flat channel of the same capacity decides."""
    gain = 1e-11 * np.array([[1.0, 9.0], [2.0, 2.0]])
    network = channels.Network(
        [0, 0], cpu_hz=1e9, transmit_power_w=0.2, **channels.Recorded.of_gains(gain[None]).links
    )
    draw = network.draw(Stream(1))
    draws = replace(draw, h=draw.h[None], spectrum=draw.spectrum[None])
    seen = []

    class Seen(Waterfall):
        def probability(self, snr, draws):
            seen.append(snr)
            return super().probability(snr, draws)

    delivered(channels.EqualSlots(), Load(1e6, 1e3), draws, Seen(), 1, Stream(2))
    noise = 10 ** (-174 / 10) / 1000 * 9e6
    capacity = np.log2(1 + 0.2 * gain / noise).mean(-1)
    np.testing.assert_allclose(seen[0][0], 2**capacity - 1, rtol=1e-6)
    weak = channels.Network(
        [0, 0], cpu_hz=1e9, transmit_power_w=1e-3, **channels.Recorded.of_gains(gain[None]).links
    ).draw(Stream(1))
    draws = replace(weak, h=weak.h[None], spectrum=weak.spectrum[None])
    delivered(solvers.WaterFilled(), Load(1e6, 1e3), draws, Seen(), 1, Stream(2))
    # Clients load their power for the lower channels on which they base their rates.
    powers = solvers.water_filling(gain / noise * 9e6 / Seen().margin, 1e-3, 9e6).value
    capacity = np.log2(1 + 2 * powers * gain / noise).mean(-1)
    assert abs(powers - 5e-4).max() > 1e-4
    np.testing.assert_allclose(seen[1][0], 2**capacity - 1, rtol=1e-5)


def test_water_filling_shortens_rounds_of_weak_clients():
    """Equal loading is the default, to the bit; modulation and coding is another law."""
    weak = WIDE | {"snr_db": -5.0, "uplink": "tdma"}
    default, equal, filled = (
        wirelessfl.price(config(**weak, **loading))
        for loading in ({}, {"power_loading": "equal"}, {"power_loading": "water-filling"})
    )
    assert default.rows == equal.rows
    assert (filled.seconds < 0.99 * equal.seconds).all()
    with pytest.raises(ConfigError, match='rates="mcs" conflicts with power_loading'):
        config(**WIDE, rates="mcs", power_loading="water-filling")
    with pytest.raises(ConfigError, match="has no method rates"):
        config(schedule="buffered", power_loading="water-filling")
