"""Small problems that train in a fraction of a second, and fixtures for runs."""

import shutil

import numpy as np
import pytest
import torch

from channels import Network
from channels.streams import Stream
from tests.executors import EXECUTORS
from tests.quick import fewer_steps, models_checked_once
from wirelessfl.algorithms import HFedAvg, find_algorithm
from wirelessfl.config import Config
from wirelessfl.data import Dataset

NETWORK = ("clients", "cells")


def make_dataset(samples=240, features=12, classes=4, seed=0):
    """Gaussian classes with random centres, which an FCNN learns in a few rounds."""
    random = Stream(seed, ("toy",)).generator()
    centres = random.standard_normal((classes, features))
    labels = np.tile(np.arange(classes), samples // classes + 60)
    points = centres[labels] + 0.7 * random.standard_normal((len(labels), features))
    x, y = torch.from_numpy(points).float().clamp(-3, 3) / 3, torch.from_numpy(labels)
    return Dataset("toy", x[:samples], y[:samples], x[samples:], y[samples:], classes)


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Runs find beamformers in fewer steps, and check equal models once."""
    with fewer_steps(), models_checked_once():
        yield


@pytest.fixture(scope="session")
def toy():
    return make_dataset()


@pytest.fixture
def config(tmp_path):
    """Factory of configurations for the toy data, each with a new output folder.

    ``network=True``, or the path of a network, omits cells and clients, which it determines.
    """
    made = []

    def make(algorithm="hist", *, network=False, **flags):
        made.append(algorithm)
        small = {
            "clients": 6,
            "local_steps": 3,
            "rounds": 3,
            "batch_size": 8,
            "lr": 0.1,
            "threads": 1,
            "chunk": 4,  # a chunk chosen by timing could prevent bit-identical runs
            "out": tmp_path / f"run{len(made)}",
        }
        if issubclass(find_algorithm(algorithm), HFedAvg):
            small["cells"] = 3
        if network:
            small = {key: value for key, value in small.items() if key not in NETWORK}
            small |= {"network": network} if isinstance(network, str) else {}
        return Config.from_flags(algorithm, **(small | flags))

    return make


@pytest.fixture(params=EXECUTORS)
def path(request):
    """Name of an executor variant; a test that uses it runs with each variant."""
    return request.param


@pytest.fixture
def trace(tmp_path):
    """Factory of trace files from stays (client, join, leave)."""

    def make(*stays):
        lines = [",".join(map(str, stay)) for stay in stays]
        file = tmp_path / "stays.csv"
        file.write_text("\n".join(["client,join,leave", *lines]) + "\n")
        return file

    return make


def without_wall(rows):
    return [{k: v for k, v in row.items() if k != "wall_seconds"} for row in rows]


@pytest.fixture(scope="session")
def bare():
    """Function that removes wall-clock times, which differ between equal runs, from rows."""
    return without_wall


@pytest.fixture(scope="session")
def same():
    """Function that asserts bit-identical rows and parameters, except for wall-clock times."""

    def check(first, second):
        assert without_wall(first.rows) == without_wall(second.rows)
        assert first.params.keys() == second.params.keys()
        for name, value in first.params.items():
            assert torch.equal(value, second.params[name]), name

    return check


@pytest.fixture(scope="session")
def network_of():
    """Factory of networks from the cell of each client."""

    def make(cell_of, speed=1e9):
        return Network.from_snr(cell_of, cpu_hz=speed, snr_db=20)

    return make


@pytest.fixture
def halt_at():
    """Factory of row callbacks that interrupt a run at a given row, counted from 0."""

    def make(last):
        rows = iter(range(last))

        def on_row(row):
            if next(rows, None) is None:
                raise KeyboardInterrupt

        return on_row

    return make


class Copies(list):
    """A list of copies of a run's folder, one per row, as a kill after that row would leave it."""

    def __init__(self, parent):
        super().__init__()
        self.parent = parent

    def of(self, folder):
        """Return a row callback that copies ``folder``."""

        def on_row(row):
            self.append(shutil.copytree(folder, self.parent / f"copy{len(self)}"))

        return on_row


@pytest.fixture
def copies(tmp_path):
    """An empty list of copies of a run's folder."""
    return Copies(tmp_path)
