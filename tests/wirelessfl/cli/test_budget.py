"""The command that prints link budgets."""

import json
import math

import numpy as np
import pytest

from wirelessfl.cli import main

EXAMPLE = (
    "--layout ring --distance-m 299.88 --path-loss umi --line-of-sight never --shadowing-db 0 "
    "--carrier-ghz 3.5 --bandwidth-hz 20e6 --transmit-power-dbm 23 --noise-figure-db 7 "
    "--antennas 1 --clients 1"
)
"""300 m from antenna to antenna: heights differ by 8.5 m."""


@pytest.fixture
def printed(capsys, monkeypatch):
    """A function that runs the command and returns what it prints."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(words: str) -> str:
        assert main(["budget", *words.split()]) == 0
        shown = capsys.readouterr()
        assert not shown.err
        return shown.out

    return run


def test_the_worked_example(printed):
    """UMi NLOS at 300 m, by hand: loss, noise, SNR, rate and seconds."""
    loss = 22.4 + 35.3 * math.log10(300) + 21.3 * math.log10(3.5)
    noise = -174 + 10 * math.log10(20e6) + 7
    snr = 23 - loss - noise
    rate = 20e6 * math.log2(1 + 10 ** (snr / 10))
    assert (round(loss, 2), round(snr, 2)) == (121.43, -4.44)
    (row,) = json.loads(printed(f"{EXAMPLE} --json --upload-mib 2"))["clients"]
    assert row["path loss [dB]"] == pytest.approx(loss, abs=1e-3)
    assert row["noise [dBm]"] == pytest.approx(noise)
    assert row["mean SNR [dB]"] == pytest.approx(snr, abs=1e-3)
    assert row["rate, equal slots [bit/s]"] == pytest.approx(rate, rel=1e-3)
    assert row["upload, equal slots [s]"] == pytest.approx(2 * 8 * 2**20 / rate, rel=1e-3)
    assert row["noise rise, (I+N)/N [dB]"] == "off"
    text = printed(EXAMPLE)
    for line in ("path loss [dB]", "121.43"), ("mean SNR [dB]", "-4.44"), ("interference", "off"):
        assert any(all(part in found for part in line) for found in text.splitlines())
    assert "1 client in 1 cell" in text


def test_tables_of_many_clients(printed):
    flags = "--layout hexagonal --path-loss umi --clients 12 --reuse-factor 1"
    text = printed(flags)
    assert "quantiles over clients" in text
    assert "Interference between cells is off" not in text
    assert max(map(len, text.splitlines()[:20])) <= 80
    lines = printed(f"{flags} --per-client").splitlines()
    assert sum(line.startswith("│") for line in lines) == 12
    found = json.loads(printed(f"{flags} --json"))
    assert len(found["clients"]) == 12
    assert all(row["noise rise, (I+N)/N [dB]"] > 0 for row in found["clients"])


def test_networks_without_positions_have_a_budget(printed):
    """At the default SNRs of 30 and 40 dB; distances are not known."""
    text = printed("--clients 8")
    assert "mean SNR [dB]" in text
    assert "distance" not in text
    assert "30.00" in text
    assert "40.00" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--upload-mib 0", "upload_mib is 0.0: give a finite number"),
        ("--layout ring --distance-m 0.3", "distance_m is '0.3': give a number >= 1"),
        ("--layout hexagonal --snr-db 3", "snr_db=3.0 conflicts with layout"),
        ("--rounds 5", "rounds=5 has no effect on a link budget: leave it out."),
        ("--lr .1", "lr=.1 has no effect on a link budget: leave it out."),
        ("fedavg --dataset mnist --clients 4", "dataset=mnist has no effect on a link budget"),
    ],
)
def test_wrong_words_are_one_line(capsys, words, message):
    assert main(["budget", *words.split()]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert not shown.out


def test_the_uplink_has_a_row_if_it_is_another_one(printed):
    """Optimal bands end no later than equal bands; two elements per symbol take half the time."""
    flags = "--layout disc --cells 2 --clients 12 --json"

    def seconds(more):
        rows = json.loads(printed(f"{flags} {more}"))["clients"]
        names = [name for name in rows[0] if name.startswith("upload, ")]
        return {name: [row[name] for row in rows] for name in names}

    usual = seconds("")
    assert len(usual) == 3
    assert seconds("--uplink ofdma") == seconds("--uplink aircomp") == usual
    best = seconds("--uplink ofdma --allocation optimal")
    assert max(best["upload, ofdma as set [s]"]) < max(usual["upload, equal bands [s]"])
    twice = seconds("--uplink aircomp --convention physical --elements-per-symbol 2")
    assert twice["upload, aircomp as set [s]"] == pytest.approx(
        np.divide(usual["upload, over the air [s]"], 2)
    )


def test_choices_of_ones_own_have_their_flags_without_an_algorithm(printed, tmp_path):
    file = tmp_path / "my_disc.py"
    file.write_text(
        "from dataclasses import dataclass\n"
        "import channels\n"
        "from wirelessfl.extend import Placed\n"
        "@dataclass(frozen=True)\n"
        "class Mine(Placed):\n"
        "    span_m: float = 500.0\n"
        "    def build(self):\n"
        "        return channels.Ring(self.span_m)\n",
        encoding="utf-8",
    )
    text = printed(f"--layout {file}:Mine --span-m 123 --cells 1 --clients 1")
    assert "123.00" in text


def test_help_lists_only_the_network(capsys):
    with pytest.raises(SystemExit):
        main(["budget", "--layout", "disc", "--help"])
    text = capsys.readouterr().out
    for flag in ("--radius-m", "--carrier-ghz", "--noise-figure-db"):
        assert flag in text
    for flag in ("--lr", "--snr-db", "--dataset"):
        assert flag not in text


@pytest.mark.parametrize(
    ("flags", "note"),
    [
        ("--pilot-symbols 8", "does not count the seconds and joules of pilots"),
        ("--mobility waypoint", "clients move, and a link budget has their gains in the first"),
    ],
)
def test_what_a_budget_leaves_out_is_said(flags, note, capsys):
    assert main(["budget", "--clients", "4", "--layout", "disc", *flags.split()]) == 0
    assert note in capsys.readouterr().err
