"""The page on compressed uploads: its classes send and count what it says, in rounds and later."""

import math
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import wirelessfl
from channels import Network
from tests.docs.pages import GUIDES, blocks

FILES = {file: code for _, file, code in blocks(GUIDES / "compressed-uploads.md") if file}
NETWORK = Network(np.zeros(4, int), cpu_hz=1e9, cycles_per_step=1, gain_db=-100.0, bandwidth_hz=1e5)
"""Training takes hardly any time and energy."""


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The module of the page, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_compression", raising=False)
    for file, code in FILES.items():
        Path(file).write_text(code)
    return SimpleNamespace(**runpy.run_path("my_compression.py"))


def test_what_is_sent_is_compressed_and_what_is_left_out_is_kept(page):
    update, kept = torch.randn(2, 3, 50, generator=torch.Generator().manual_seed(1))
    start = torch.zeros(3, 50)
    cohort = SimpleNamespace(start=start, kept={"error": kept})
    for algorithm in (page.Rounded(bits=3), page.TopK(fraction=0.1)):
        sent = algorithm.send(update, {}, cohort)["update"]
        left = algorithm.keep(update, {}, cohort)["error"]
        assert torch.allclose(sent + left, update + kept)
        if isinstance(algorithm, page.TopK):
            assert (sent != 0).sum(1).tolist() == [5, 5, 5]
            assert (sent.abs().amax(1) == (update + kept).abs().amax(1)).all()
            assert (left.abs().amax(1) <= (sent.abs() + 9 * (sent == 0)).amin(1)).all()
        else:
            assert max(len(row.unique()) for row in sent) <= 2**3 - 1
            assert torch.allclose(sent.abs().amax(1), (update + kept).abs().amax(1))


def test_bits_count_places_and_scales(page):
    """Of 2^11 elements, an index has 11 bits; a tenth of them costs less than a bit for each."""
    assert page.top_k_bits(0.01, 2048) == pytest.approx(0.01 * (32 + 11))
    assert page.top_k_bits(0.1, 2048) == pytest.approx(0.1 * 32 + 1)
    assert page.rounded_bits(4, 2048) == 4 + 2**-6


@pytest.mark.parametrize("schedule", [{}, {"schedule": "buffered", "buffer": 1}])
def test_seconds_and_joules_count_the_bits(page, schedule):
    """A quarter of the bits takes a quarter of the seconds and joules, at any time, too."""
    settings = {"dataset": "digits", "rounds": 2, "local_steps": 1, **schedule}
    last = []
    for bits in (32, 8):
        config = wirelessfl.Config.from_flags(
            "fedavg", uplink="my_compression:FewBits", sent_bits=bits, **settings
        )
        last.append(wirelessfl.run(config, network=NETWORK).rows[-1])
    for name in ("sim_seconds", "joules"):
        assert last[0][name] > 0
        assert math.isclose(last[1][name], last[0][name] / 4, rel_tol=1e-2), name
    assert last[0]["uplink_mib"] == last[1]["uplink_mib"]


def test_the_study_runs(page, capsys):
    """Fewer bits take less time, and the printed MiB are those of the bits."""
    code = FILES["compressed_study.py"]
    Path("compressed_study.py").write_text(code.replace("rounds=20", "rounds=2"))
    base = runpy.run_path("compressed_study.py")["base"]
    lines = re.findall(
        r"([\d.]+) bits, accuracy \S+, ([\d.]+) s, \S+ J, (\S+) MiB", capsys.readouterr().out
    )
    bits, seconds, mib = (np.array(column, float) for column in zip(*lines, strict=True))
    assert len(bits) == 5
    assert (np.argsort(bits) == np.argsort(seconds)).all()
    assert np.allclose(mib / mib[0], bits / 32, atol=0.06)
    text = (GUIDES / "compressed-uploads.md").read_text(encoding="utf-8")
    assert f"needs {bits[3]:.1f} bits per element" in text
    seconds = {}
    for sent in (32, bits[3]):
        config = wirelessfl.Config.from_flags(
            "fedavg", uplink="my_compression:FewBits", sent_bits=sent, rounds=20, **base
        )
        seconds[sent] = wirelessfl.price(config).rows[-1]["sim_seconds"]
    few, whole = seconds[bits[3]], seconds[32]
    assert f"take {few:.2f} s; with 32 bits, they take {whole:.2f} s" in " ".join(text.split())
