"""The figures that a paper's experiments draw, to be looked at."""

import pytest

from tests.drawn import recorded


@pytest.fixture(scope="module")
def figures():
    """Every figure that the tests of a file save, by its name."""
    with recorded() as drawn:
        yield drawn


@pytest.fixture
def redrawn(figures):
    """Likewise of one test."""
    with recorded(laid_out=False) as drawn:
        yield drawn
