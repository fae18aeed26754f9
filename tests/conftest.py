"""What all tests share: hypothesis profiles and the place of the real data."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tests.launching import Launcher

# Small problems on a busy machine: threads that wait for each other cost more than they bring.
os.environ["OMP_NUM_THREADS"] = "1"

# Tests kill processes, but nothing cuts the power: waiting for the disk thousands of times is idle.
os.fsync = lambda file: None

# Where tests run in the background, interrupts may be ignored; some tests send them.
signal.signal(signal.SIGINT, signal.default_int_handler)

LONG = (
    "experiments",
    "wirelessfl/training/test_workers.py",
    "wirelessfl/training/test_sharding.py",
    "wirelessfl/runs",
    "wirelessfl/sessions",
    "test_docs.py",
    "wirelessfl/bench",
)
"""Files, and folders of files, that take long: they come first, so that no core waits for one."""

settings.register_profile("default", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("fuzz", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(items):
    """Files that take long first, in the order of ``LONG``."""
    here = Path(__file__).parent
    first = [here / name for name in LONG]

    def place(item):
        found = (i for i, path in enumerate(first) if item.path.is_relative_to(path))
        return next(found, len(first))

    items.sort(key=place)


@pytest.fixture(scope="session")
def launcher(tmp_path_factory):
    """What starts commands in processes of their own."""
    launcher = Launcher(tmp_path_factory.mktemp("launched"))
    yield launcher
    launcher.close()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of the real data sets; tests that ask for it are skipped where there is none."""
    folder = os.environ.get("WIRELESSFL_DATA")
    if not folder or not Path(folder, "fashion-mnist").is_dir():
        pytest.skip("WIRELESSFL_DATA names no folder with fashion-mnist")
    return Path(folder)
