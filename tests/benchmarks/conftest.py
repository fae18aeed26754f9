"""Fake timings with known values, from which tests compute expected tables."""

import itertools

import pytest

from benchmarks import gpu, timing


@pytest.fixture
def known_times(monkeypatch):
    """Timed calls are not executed and take 1, 2, 3, ... seconds; warm-up calls are executed."""
    numbers = itertools.count(1)
    for module in (timing, gpu):
        monkeypatch.setattr(module, "seconds_of", lambda _: float(next(numbers)))


@pytest.fixture
def take_turns():
    """Factory of the expected seconds of interleaved methods, after ``begun`` earlier timings."""

    def make(ways, repeats, begun=0):
        return {
            way: [begun + turn * len(ways) + place + 1 for turn in range(repeats)]
            for place, way in enumerate(ways)
        }

    return make
