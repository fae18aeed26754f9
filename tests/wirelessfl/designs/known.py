"""A learning curve that is known, and small configurations."""

from typing import NamedTuple

import numpy as np

from wirelessfl.config import Config

SMALL = {"cells": 2, "clients": 4, "hidden": (8,), "batch_size": 8, "threads": 1}
FEW = {"local_steps": [2, 5, 12], "edge_rounds": [1, 3], "draws": 3}


def config(algorithm="hist", **flags):
    return Config.from_flags(algorithm, **(SMALL | flags))


class Known(NamedTuple):
    """R = (work/(H E) + 3 + h H + e E + mask (m - 1)) / (1 - target)."""

    work: float = 100.0
    h: float = 0.3
    e: float = 1.0
    mask: float = 2.0
    targets: tuple[float, ...] = (0.1, 0.9)

    def shape(self, local_steps, edge_rounds, clients=None, largest=1.0, noise=0.0):
        h, e, m = map(np.asarray, (local_steps, edge_rounds, largest))
        return self.work / (h * e) + 3 + self.h * h + self.e * e + self.mask * (m - 1)

    def rounds(self, target, *args, **where):
        found = self.shape(*args, **where) / (1 - target)
        return found if target <= self.targets[-1] else np.full_like(found, np.inf)

    def accuracy(self, rounds, *args, **where):
        return np.clip(1 - self.shape(*args, **where) / np.asarray(rounds), 0.0, 0.99)
