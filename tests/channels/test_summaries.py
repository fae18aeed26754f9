"""One line for networks, draws, loads, services and budgets, and the table of a budget."""

import numpy as np
import pytest

from channels import EqualBands, Load, Network, link_budget
from channels.streams import Stream
from channels.summaries import hertz, span

NETWORK = Network.from_snr(
    [0, 0, 1], cpu_hz=1e9, snr_db=[10, 20, 30], bandwidth_hz=[9e6, 9e6], antennas=4
)


def test_each_has_one_line():
    draw = NETWORK.draw(Stream(1))
    snr = 10 * np.log10(draw.snr * draw.gain)
    size = "3 clients in 2 cells, 9 MHz per cell, 4 antennas"
    assert repr(NETWORK) == f"<Network: {size}, mean SNR 10 to 30 dB>"
    assert repr(draw) == f"<ChannelDraw: {size}, SNR {snr.min():.3g} to {snr.max():.3g} dB>"
    assert repr(NETWORK.draws(Stream(1), range(5))).startswith(f"<ChannelDraw: 5 blocks of {size}")
    load = Load(1e6, 100)
    assert repr(load) == "<Load: shape [], 1e+06 cycles, 3.2e+03 bits>"
    service = EqualBands().serve(load, draw)
    assert repr(service).startswith("<Service: shape [3], 0.00")
    assert repr(service).endswith("3 of 3 arrive>")
    assert repr(link_budget(NETWORK)) == "<LinkBudget: 3 clients, mean SNR 10 to 30 dB>"


def test_a_network_of_many_clients_costs_little():
    network = Network(np.zeros(10**6, dtype=int), cpu_hz=1e9, gain_db=-100.0, bandwidth_hz=1e6)
    assert "1,000,000 clients in 1 cell, 1 MHz, 1 antenna, mean SNR about " in repr(network)


def test_the_table_has_a_line_per_client():
    budget = link_budget(NETWORK, bits=8e6)
    head, units, *lines = budget.text().splitlines()
    assert (head.split()[:2], units.split()[:2]) == (["mean", "SNR"], ["client", "cell"])
    assert len(lines) == 3
    assert [line.split()[:3] for line in lines] == [
        ["0", "0", "10.00"], ["1", "0", "20.00"], ["2", "1", "30.00"],
    ]  # fmt: skip
    assert float(lines[0].split()[-2]) == pytest.approx(budget.seconds["equal bands"][0], rel=1e-3)
    assert budget.text(clients=1).splitlines()[-1] == "... and 2 more"


def test_the_budget_of_a_draw_has_its_channels():
    draw = NETWORK.draw(Stream(2))
    found = link_budget(draw, bits=8e6)
    served = EqualBands().serve(Load(0.0, 8e6 / 32), draw)
    np.testing.assert_allclose(found.seconds["equal bands"], served.seconds)
    np.testing.assert_allclose(found.combined_snr_db, 10 * np.log10(draw.snr * draw.gain))
    np.testing.assert_array_equal(found.mean_snr_db, NETWORK.mean_snr_db)
    with pytest.raises(ValueError, match="give a draw of one block"):
        link_budget(NETWORK.draws(Stream(2), range(2)))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (hertz([9e6, 2e7]), "9 to 20 MHz"),
        (hertz(9.0), "9 Hz"),
        (hertz(2.4e9), "2.4 GHz"),
        (span([], "dB"), "none"),
        (span([np.nan, 1.0], "dB"), "1 dB"),
        (span([-np.inf, 2.0], "dB"), "-inf to 2 dB"),
    ],
)
def test_ranges(text, wanted):
    assert text == wanted
