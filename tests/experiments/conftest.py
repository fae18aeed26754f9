"""Fixtures that collect the figures drawn by experiments."""

import pytest

from tests.drawn import recorded


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
