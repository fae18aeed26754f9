"""Hypothesis profiles, the order of tests, and fixtures for all tests."""

import gc
import os
import signal
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from tests.launching import Launcher
from tests.sampling import left_out

# For small problems on a busy machine, one thread is faster than several.
os.environ["OMP_NUM_THREADS"] = "1"

gc.disable()  # until all tests are collected

# Tests kill processes but never cut the power, so files need not reach the disk.
os.fsync = lambda file: None

# Some tests send SIGINT, which may be ignored if the tests run in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)

PROCESSES = (
    "wirelessfl/runs/test_sweep.py",
    "wirelessfl/runs/test_pools.py",
    "wirelessfl/training/workers/test_workers.py",
    "wirelessfl/training/test_sharding.py",
    "wirelessfl/training/test_same_bits.py",
    "wirelessfl/training/test_submodel_memory.py",
    "wirelessfl/runs/test_resumed.py",
    "wirelessfl/runs/test_ended_commands.py",
    "wirelessfl/runs/test_about.py",
    "benchmarks/test_engine.py",
    "experiments/test_queue.py",
    "docs/test_own_parts.py",
    "test_docs.py",
    "test_package.py",
)
"""Files whose tests start processes. One worker runs them all: their waits leave a core idle."""
LONG = (*PROCESSES, "experiments")
"""Slow files and folders. They run first, so that all cores are busy until the end."""

settings.register_profile("default", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("sample", settings.get_profile("default"), max_examples=10)
settings.register_profile("fuzz", deadline=None, max_examples=2000)


def pytest_configure(config):
    """Choose the number of Hypothesis's examples."""
    usual = "sample" if config.getoption("--sample") else "default"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", usual))


def pytest_collection_finish():
    """Exclude tests and modules, which live until the end, from garbage collection.

    Collections are rarer than by default, which takes 4 % less time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


def pytest_addoption(parser):
    """Add ``--sample``."""
    parser.addoption(
        "--sample", action="store_true", help="only some cases of tests that are marked thorough"
    )


def pytest_collection_modifyitems(config, items):
    """Leave out what a sample does not contain; run slow files first, in the order of ``LONG``."""
    if config.getoption("--sample"):
        out = left_out(items)
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]
    here = Path(__file__).parent
    first = [here / name for name in LONG]

    @cache  # a file has many tests
    def place(file):
        found = (i for i, path in enumerate(first) if file.is_relative_to(path))
        return next(found, len(first))

    items.sort(key=lambda item: place(item.path))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Distribute tests by file, and those of ``PROCESSES`` together."""
    from xdist.scheduler import LoadFileScheduling

    processes = {f"tests/{name}" for name in PROCESSES}

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "processes" if file in processes else file

    return Scheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def preloaded():
    """Worker processes find ``torch._dynamo`` imported, which the first gradient would import.

    That takes a second in each of the many workers that tests start.
    """
    from wirelessfl.training.workers import processes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "PRELOADED", (*processes.PRELOADED, "torch._dynamo"))
        yield


@pytest.fixture(scope="session")
def launcher(tmp_path_factory):
    """The launcher, which starts commands in separate processes."""
    launcher = Launcher(tmp_path_factory.mktemp("launched"))
    yield launcher
    launcher.close()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of the real data sets; tests that use it are skipped if it is missing."""
    folder = os.environ.get("WIRELESSFL_DATA")
    if not folder or not Path(folder, "fashion-mnist").is_dir():
        pytest.skip("WIRELESSFL_DATA is not a folder that contains fashion-mnist")
    return Path(folder)
