"""What follows from settings alone: masks, channels and durations of rounds, without the data."""

from __future__ import annotations

import torch

from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.setup import RoundsSetup, build

SHAPES = {
    "cifar10": (3, 32, 32),
    "cifar10-jpeg": (3, 32, 32),
    "digits": (1, 8, 8),
    "fashion-mnist": (1, 28, 28),
    "mnist": (1, 28, 28),
}
CLASSES = 10
SAMPLES = 100
"""Samples per client of the data set that replaces the real one."""


def rounds_setup(config: Config) -> RoundsSetup:
    """Everything that a run in rounds needs, with a data set of zeros instead of the real one.

    Model, masks, network and channels are those of the run, but not the clients' samples. So the
    durations of rounds are those of the run only if they do not depend on numbers of samples.

    Args:
        config: settings of a run on one of ``SHAPES``.
    """
    count = SAMPLES * config.network.clients
    inputs = torch.zeros(count, *SHAPES[config.data.dataset])
    labels = torch.arange(count) % CLASSES
    data = Dataset(config.data.dataset, inputs, labels, inputs[:CLASSES], labels[:CLASSES], CLASSES)
    setup = build(config.with_run({"workers": 1, "chunk": 1, "threads": 1}), data=data)
    assert isinstance(setup, RoundsSetup)
    return setup
