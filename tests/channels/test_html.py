"""Tables for notebooks: well-formed, escaped, at most 20 rows, with the numbers of the objects."""

from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import solvers
import wirelessfl
from channels import Stream, section_vi_c
from channels.access import EqualSlots
from channels.budget import link_budget
from channels.summaries import ROWS, html_table
from wirelessfl.data import Dataset

STREAM = Stream(1)
NETWORK = section_vi_c(2, 30, stream=STREAM)


def table_of(thing):
    """Caption, headings, and cells of the rows."""
    root = ElementTree.fromstring(f"<div>{thing._repr_html_()}</div>")
    table = root.find("table")
    rows = [[cell.text for cell in row] for row in table.findall("tr")]
    return table.find("caption").text, rows[0], rows[1:], [p.text for p in root.findall("p")]


def test_text_is_escaped_and_rows_are_limited():
    html = html_table("a < b", {"<script>": ["&"] * 30}, 40)
    assert "<script>" not in html
    assert html.count("<tr>") == 1 + ROWS
    assert "&lt;script&gt;" in html
    assert "... and 20 more" in html


def test_a_network():
    title, heads, rows, more = table_of(NETWORK)
    assert title == repr(NETWORK)[1:-1]
    assert more == ["... and 10 more"]
    assert [row[0] for row in rows] == [str(client) for client in range(20)]
    at = heads.index("mean SNR [dB]")
    assert [float(row[at]) for row in rows] == pytest.approx(NETWORK.mean_snr_db[:20], abs=0.051)
    part = table_of(NETWORK.of([3, 7]))
    assert [row[0] for row in part[2]] == ["3", "7"]


def test_a_network_of_very_many_clients_is_fast():
    network = section_vi_c(2, 10**6, stream=STREAM)
    assert table_of(network)[3] == [f"... and {10**6 - 20:,} more"]


@pytest.mark.parametrize("blocks", [(), (2,)])
def test_channels(blocks):
    draws = [NETWORK.draw(STREAM, number) for number in range(2)]
    draw = draws[0] if not blocks else type(draws[0])(NETWORK, np.stack([d.h for d in draws]))
    _, heads, rows, _ = table_of(draw)
    power = (np.abs(draws[0].h.astype(complex)) ** 2).sum(-1)[:20]
    snr = 10 ** (NETWORK.snr_db[:20] / 10) * power
    at = heads.index("SNR [dB]")
    assert [float(row[at]) for row in rows] == pytest.approx(10 * np.log10(snr), abs=0.051)
    rate = NETWORK.bandwidth_hz[0] * np.log2(1 + snr) / 1e6
    assert [float(row[-1]) for row in rows] == pytest.approx(rate, rel=1e-3)


def test_a_link_budget():
    budget = link_budget(NETWORK, bits=1e6, accesses={"slots": EqualSlots()})
    _, heads, rows, _ = table_of(budget)
    at = heads.index("slots [Mbit/s]")
    rates = budget.rate_bps["slots"][:20] / 1e6
    assert [float(row[at]) for row in rows] == pytest.approx(rates, rel=1e-3)


def test_solutions():
    one = solvers.optimize_mask_sizes([1.0, 3.0], 8)
    title, heads, rows, more = table_of(one)
    assert (heads, rows, more) == (
        ["status", "objective", "bound", "gap"],
        [["optimal", "6", "6", "0"]],
        [],
    )
    assert title.startswith(one.backend)
    batch = type(one)(
        None, np.arange(25.0), np.arange(25.0), np.zeros(25),
        np.array([one.status] * 25, dtype=object), "x < y", 0.1,
    )  # fmt: skip
    title, heads, rows, more = table_of(batch)
    assert title.startswith("x < y")
    assert heads[0] == "item"
    assert [row[2] for row in rows] == [str(item) for item in range(20)]
    assert more == ["... and 5 more"]


def test_prices_and_data():
    prices = wirelessfl.price(wirelessfl.Config.from_flags("fedavg", clients=4, rounds=50))
    _, heads, rows, _ = table_of(prices)
    assert [rows[0][0], rows[-1][0], len(rows)] == ["0", "50", 20]
    seconds = [float(row[heads.index("seconds")]) for row in rows]
    known = [prices.at_round(int(row[0]))["sim_seconds"] for row in rows]
    assert seconds == pytest.approx(known, rel=1e-3)
    data = Dataset(
        "<b>", torch.zeros(3, 2), torch.tensor([0, 1, 1]), torch.zeros(1, 2), torch.ones(1).long()
    )
    title, _, rows, _ = table_of(data)
    assert title.startswith("Dataset <b>")
    assert [row[1] for row in rows] == ["3", "1"]
