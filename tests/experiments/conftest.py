"""Fixtures that collect the figures drawn by experiments."""

import lzma
from functools import partial

import pytest

from tests.drawn import recorded


@pytest.fixture(scope="session", autouse=True)
def lightly_compressed():
    """Finished runs are stored with less compression, which takes a tenth of the time."""
    with pytest.MonkeyPatch.context() as patch:
        light = partial(lzma.compress, preset=0)
        patch.setattr("wirelessfl.results.archive.lzma.compress", lambda data, **_: light(data))
        yield


@pytest.fixture(scope="module")
def figures():
    """The figures saved by the tests of a file, by name."""
    with recorded() as drawn:
        yield drawn


@pytest.fixture
def redrawn(figures):
    """The figures saved by one test, by name."""
    with recorded(laid_out=False) as drawn:
        yield drawn
