"""The figures that a paper's experiments draw, to be looked at."""

import pytest

from tests.drawn import recorded


@pytest.fixture(scope="module")
def figures():
    """Every figure that is saved by tests of a file, by its name."""
    with recorded() as drawn:
        yield drawn
