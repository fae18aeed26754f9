"""Small problems on which whole runs take a fraction of a second."""

import numpy as np
import pytest
import torch

from channels.streams import Stream
from wirelessfl.config import Config
from wirelessfl.data import Dataset


def make_dataset(samples=240, features=12, classes=4, seed=0):
    """Gaussian classes around random centres, which an FCNN learns in a few rounds."""
    random = Stream(seed, ("toy",)).generator()
    centres = random.standard_normal((classes, features))
    labels = np.tile(np.arange(classes), samples // classes + 60)
    points = centres[labels] + 0.7 * random.standard_normal((len(labels), features))
    x, y = torch.from_numpy(points).float().clamp(-3, 3) / 3, torch.from_numpy(labels)
    return Dataset("toy", x[:samples], y[:samples], x[samples:], y[samples:], classes)


@pytest.fixture(scope="session")
def toy():
    return make_dataset()


@pytest.fixture
def config(tmp_path):
    """A maker of configurations for the toy data; flags by name, a new folder each."""
    made = []

    def make(algorithm="hist", **flags):
        made.append(algorithm)
        small = {
            "clients": 6,
            "cells": 1 if algorithm == "fedavg" else 3,
            "local_steps": 3,
            "rounds": 3,
            "batch_size": 8,
            "lr": 0.1,
            "threads": 1,
            "out": tmp_path / f"run{len(made)}",
        }
        return Config.from_flags(algorithm, **(small | flags))

    return make
