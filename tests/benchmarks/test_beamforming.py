"""Beamforming benchmark: values of its columns."""

import itertools
import time
from types import SimpleNamespace

import pytest
import torch

from benchmarks import beamforming
from benchmarks.beamforming import _Case


@pytest.mark.thorough
def test_rows(monkeypatch):
    """Ratios are at most 1, exact cases have certificates, and speeds match a fake clock."""
    cases = (_Case(3, 6, exact=True), _Case(4, 6, path_gain_db=20, factor=1e-8))
    monkeypatch.setattr(beamforming, "_CASES", cases)
    numbers = itertools.count()
    moments = SimpleNamespace(
        perf_counter=lambda: float(next(numbers) ** 2), monotonic=time.monotonic
    )
    monkeypatch.setattr(beamforming, "time", moments)
    threads = torch.get_num_threads()
    quality, speed = beamforming.beamforming_bench(
        3, problems=2, batch=4, limit_seconds=600, starts=50
    ).values()
    assert torch.get_num_threads() == threads
    assert {row["problem"] for row in quality} == {"M=3 K=6", "M=4 K=6 +-20 dB x1e-08"}
    assert len(quality) == 2 * 5
    for row in quality:
        certified = "2" if row["problem"] == "M=3 K=6" else "0"
        assert row["certified"] == f"{certified} of 2"
        assert 0 < row["min_ratio"] <= row["mean_ratio"] <= 1 + 2e-4
        assert 0 < row["ratio_to_sdr_bound"] <= 1 + 1e-6
        assert row["ms_per_problem"] > 0
        if row["method"] == "anneal":
            assert row["mean_ratio"] > 0.999
    assert speed[0]["method"] == "anneal"
    # The median is the second of three timed runs. Each reads the clock twice, a warm-up run once.
    begun = [3 * len(speed) + 2 * place for place in range(len(speed))]
    seconds = [(number + 1) ** 2 - number**2 for number in begun]
    for row, taken in zip(speed, seconds, strict=True):
        assert row["problems_per_second"] == pytest.approx(4 / taken)
        assert row["ratio_to_slowest"] == pytest.approx(max(seconds) / taken)
