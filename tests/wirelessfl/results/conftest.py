"""Folders of runs with given rows, written without training."""

import pytest
import torch

from wirelessfl.config import Config
from wirelessfl.runs.folder.about import NUMERICS
from wirelessfl.runs.folder.new_folder import create

FLAGS = {"clients": 4, "rounds": 3, "lr": 0.1}


def rows_of(accuracies, step=1.0, **fields):
    """Rows of rounds 0, 1, ...; seconds, MiB and joules of a round are multiples of ``step``."""
    return [
        {"round": i, "sim_seconds": 2.0 * step * i, "uplink_mib": 0.5 * step * i,
         "downlink_mib": 0.0, "backhaul_mib": 0.0, "joules": 0.1 * step * i, "joules_max": 0.0,
         "lost": 0, "silent": 0, "accuracy": accuracy, "loss": 3 - accuracy,
         "numerics": NUMERICS, "wall_seconds": 7.0 * i, **fields}
        for i, accuracy in enumerate(accuracies)
    ]  # fmt: skip


@pytest.fixture
def stored(tmp_path):
    """Write the folder of a run below ``runs``, and return its path."""
    made = []

    def write(algorithm, accuracies, *, step=1.0, finished=True, rows=None, **flags):
        made.append(algorithm)
        path = tmp_path / "runs" / f"{algorithm}-{len(made)}"
        directory = create(path, Config.from_flags(algorithm, **(FLAGS | flags)))
        for row in rows_of(accuracies, step) if rows is None else rows:
            directory.append(row)
        state = {
            "finished": finished,
            "fingerprint": directory.fingerprint(),
            "learners": [{"shapes": {"w": [2]}, "ties": {}}],
            "tasks": None,
        }
        directory.save({"server.cloud.params": torch.tensor([1.0, 2.0])}, state)
        return path

    return write


@pytest.fixture
def two_algorithms(stored, tmp_path):
    """Three seeds of FedAvg, two of which reach 0.8, and three of FedProx, which is twice as fast.

    By seed, FedAvg reaches 0.8 after 2, 3 and no rounds, FedProx after 1, 1 and 2.
    """
    for seed, accuracies in enumerate([(0.1, 0.5, 0.8, 0.9), (0.1, 0.4, 0.7, 0.8)], start=1):
        stored("fedavg", accuracies, seed=seed)
    stored("fedavg", (0.1, 0.2, 0.3, 0.4), seed=3)
    for seed, accuracies in enumerate([(0.1, 0.8, 0.9), (0.1, 0.9, 0.7), (0.1, 0.2, 0.85)], 1):
        stored("fedprox", accuracies, seed=seed, step=0.5)
    return tmp_path / "runs"
