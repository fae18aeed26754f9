"""A clock that tells known times, so that what benchmarks make of them can be checked."""

import itertools

import pytest

from wirelessfl.bench import gpu, timing


@pytest.fixture
def known_times(monkeypatch):
    """What is timed takes 1, 2, 3, ... seconds, and is not done; before, each is done once."""
    numbers = itertools.count(1)
    for module in (timing, gpu):
        monkeypatch.setattr(module, "seconds_of", lambda _: float(next(numbers)))


@pytest.fixture
def take_turns():
    """A maker of the seconds of ways that take turns on that clock, after so many others."""

    def make(ways, repeats, begun=0):
        return {
            way: [begun + turn * len(ways) + place + 1 for turn in range(repeats)]
            for place, way in enumerate(ways)
        }

    return make
