"""Fixtures that collect the figures drawn by experiments, and that save time."""

import lzma
from functools import partial

import pytest

from experiments.paper import Paper
from tests.drawn import recorded
from tests.quick import fewer_steps, models_checked_once


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Runs find beamformers in fewer steps, and check equal models once."""
    with fewer_steps(60), models_checked_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def lightly_compressed():
    """Finished runs are stored with less compression, which takes a tenth of the time."""
    with pytest.MonkeyPatch.context() as patch:
        light = partial(lzma.compress, preset=0)
        patch.setattr("wirelessfl.results.archive.lzma.compress", lambda data, **_: light(data))
        yield


@pytest.fixture(scope="session", autouse=True)
def studies_once():
    """Each study is loaded once, and with it the configurations of its cases are resolved once."""
    load, known = Paper.study, {}

    def study(paper, name, scale, data_dir=None):
        key = (paper.settings, paper.complete, name, scale, data_dir)
        if key not in known:
            known[key] = load(paper, name, scale, data_dir)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Paper, "study", study)
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
