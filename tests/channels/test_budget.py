"""Link budgets: a worked example by hand, rates and seconds of accesses, tables."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from channels import (
    EqualSlots,
    FixedRate,
    Layout,
    Load,
    Network,
    Positions,
    Stream,
    Umi,
    dbm_to_watts,
    link_budget,
    placed_network,
    umi,
)

STREAM = Stream(3)


@dataclass(frozen=True)
class Blocked(Umi):
    """UMi without lines of sight and shadowing."""

    def los_probability(self, distance_m):
        return 0 * super().los_probability(distance_m)

    def shadowing_std_db(self, distance_m, line_of_sight):
        return 0 * super().shadowing_std_db(distance_m, line_of_sight)


@dataclass(frozen=True)
class One(Layout):
    """One client at a given horizontal distance."""

    distance_m: float

    def place(self, cells, clients, stream, shortest_m=10.0):
        return Positions(np.zeros((1, 2)), np.array([[self.distance_m, 0.0]]), np.array([0]))


def test_worked_example():
    """23 dBm, NF 7 dB, 20 MHz, 3.5 GHz, UMi NLOS, one antenna: 121.43 dB and -4.44 dB.

    The 300 m are the distance of the antennas, which are at 10 m and 1.5 m.
    """
    network = placed_network(
        One(math.sqrt(300**2 - 8.5**2)),
        Blocked(3.5),
        stream=STREAM,
        cpu_hz=1e9,
        transmit_power_w=dbm_to_watts(23.0),
        noise_figure_db=7.0,
        bandwidth_hz=20e6,
    )
    budget = link_budget(network, bits=1e6)
    loss = 35.3 * math.log10(300) + 22.4 + 21.3 * math.log10(3.5)
    noise = -174 + 10 * math.log10(20e6) + 7
    assert budget.path_loss_db == pytest.approx(loss)
    assert budget.noise_dbm == pytest.approx(noise)
    assert budget.transmit_power_dbm == pytest.approx(23)
    assert budget.mean_snr_db == pytest.approx(23 - loss - noise)
    assert round(budget.path_loss_db[0], 2) == 121.43
    assert round(budget.mean_snr_db[0], 2) == -4.44
    rate = 20e6 * math.log2(1 + 10 ** ((23 - loss - noise) / 10))
    assert budget.rate_bps["equal slots"] == pytest.approx(rate)
    assert budget.seconds["equal slots"] == pytest.approx(1e6 / rate)
    assert not budget.line_of_sight[0]
    assert (budget.shadowing_db, budget.antenna_gain_db) == ([0], [0])


def given_network(**others):
    values = {"cpu_hz": 1e9, "snr_db": [10.0, 20.0, 5.0], "bandwidth_hz": 1e6, "antennas": 4}
    return Network.from_snr([0, 0, 1], **values | others)


def test_rates_of_accesses_by_hand():
    """Two clients share cell 0; the 4 antennas add up; path gain is a part of the channel."""
    budget = link_budget(given_network(path_gain_db=-3.0), bits=[1e5, 2e5, 3e5])
    np.testing.assert_allclose(budget.mean_snr_db, [7, 17, 2])
    np.testing.assert_allclose(budget.combined_snr_db, np.array([7, 17, 2]) + 10 * math.log10(4))
    snr, sharers = 4 * 10 ** (np.array([7, 17, 2]) / 10), np.array([2, 2, 1])
    slots = 1e6 * np.log2(1 + snr) / sharers
    bands = 1e6 / sharers * np.log2(1 + sharers * snr)
    np.testing.assert_allclose(budget.rate_bps["equal slots"], slots, rtol=1e-6)
    np.testing.assert_allclose(budget.rate_bps["equal bands"], bands, rtol=1e-6)
    np.testing.assert_allclose(
        budget.seconds["equal bands"], np.array([1e5, 2e5, 3e5]) / bands, rtol=1e-6
    )
    air = np.array([1e5, 2e5, 3e5]) / 32 * (1e-3 / 14) / (1e6 / 15e3)
    np.testing.assert_allclose(budget.seconds["over the air"], air)


def test_given_networks_have_no_path():
    budget = link_budget(given_network())
    assert budget.distance_m is budget.path_loss_db is budget.shadowing_db is None
    assert budget.seconds == {}
    names = [row["quantity"] for row in budget.table()]
    assert names[0] == "mean channel gain [dB]"
    assert budget.rows()[0]["distance [m]"] is None
    gained = link_budget(Network([0], cpu_hz=1e9, gain_db=-100.0, bandwidth_hz=1e6))
    assert gained.mean_snr_db == pytest.approx(20 - 100 + 174 - 60)


def test_interference_raises_the_noise():
    """It is off unless the network has it; then the SNR of rates falls by its mean."""
    off = link_budget(umi(cells=3, clients=30, stream=STREAM))
    on = link_budget(network := umi(cells=3, clients=30, stream=STREAM, reuse_factor=1))
    assert off.noise_rise_db is None
    assert off.rows()[0]["noise rise, (I+N)/N [dB]"] == "off"
    row = next(r for r in off.table() if r["quantity"].startswith("interference"))
    assert row["50 %"] == "off"
    watts = 10 ** (network.noise_dbm / 10) / 1000
    rise = 10 * np.log10(1 + network.interference.mean_watts() / watts)[network.cell_of]
    np.testing.assert_allclose(on.noise_rise_db, rise)
    over = 10 * np.log10(network.interference.mean_watts() / watts)[network.cell_of]
    np.testing.assert_allclose(on.interference_over_noise_db, over)
    # As much again in watts: I/N is 3 dB more.
    both = replace(network, interference_watts=network.interference.mean_watts())
    more = link_budget(both)
    np.testing.assert_allclose(more.interference_over_noise_db, over + 10 * np.log10(2))
    doubled = 10 * np.log10(1 + 2 * 10 ** (over / 10))
    np.testing.assert_allclose(more.combined_snr_db, off.combined_snr_db - doubled)
    np.testing.assert_allclose(on.mean_snr_db, off.mean_snr_db)
    np.testing.assert_allclose(on.combined_snr_db, off.combined_snr_db - rise)
    snr = 10 ** (on.combined_snr_db / 10)
    wanted = 20e6 * np.log2(1 + snr) / 10
    np.testing.assert_allclose(on.rate_bps["equal slots"], wanted, rtol=1e-6)


def test_parts_of_a_network_have_their_own_rows():
    network = umi(cells=3, clients=30, stream=STREAM)
    whole, part = link_budget(network), link_budget(network.of([3, 17]))
    assert part.client.tolist() == [3, 17]
    for name, values in part.columns().items():
        if values is not None and not name.startswith(("rate", "upload")):
            np.testing.assert_array_equal(values, whole.columns()[name][[3, 17]], err_msg=name)


def test_rows_and_quantiles():
    budget = link_budget(umi(cells=2, clients=40, stream=STREAM), bits=1e6)
    rows = budget.rows()
    assert [row["client"] for row in rows] == list(range(40))
    assert [row["cell"] for row in rows] == [0] * 20 + [1] * 20
    table = {row["quantity"]: row for row in budget.table((0.0, 0.5, 1.0))}
    for name in ("distance [m]", "mean SNR [dB]", "upload, equal bands [s]"):
        column = sorted(row[name] for row in rows)
        assert [table[name][q] for q in ("0 %", "50 %", "100 %")] == [
            column[0],
            column[19],
            column[39],
        ]


def test_own_accesses():
    accesses = {"wire": FixedRate(1e6), "turns": EqualSlots()}
    budget = link_budget(given_network(), bits=2e6, accesses=accesses)
    assert budget.seconds["wire"].tolist() == [2, 2, 2]
    assert budget.rate_bps["wire"].tolist() == [1e6, 1e6, 1e6]
    network = given_network()
    served = EqualSlots().serve(Load(0, 2e6 / 32), network.draw(STREAM)).seconds
    assert served.shape == budget.seconds["turns"].shape


def test_errors():
    network = given_network()
    with pytest.raises(TypeError, match=r"^accesses\['x'\] is 3: give a channels.Access"):
        link_budget(network, accesses={"x": 3})
    with pytest.raises(ValueError, match=r"^quantiles contains 5: give 0 to 1"):
        link_budget(network).table([5])
    with pytest.raises(ValueError, match="has no client"):
        link_budget(network.of(np.array([], dtype=int))).table()


def test_accesses_have_names():
    with pytest.raises(TypeError, match=r"^accesses is .*: give accesses by name"):
        link_budget(umi(1, 2, stream=Stream(1)), accesses=[EqualSlots()])
