"""Runs of sweeps, and their rows."""

from tests.wirelessfl.conftest import without_wall
from wirelessfl.config import Config


def configs(rounds=2, seeds=(1, 2, 3), **flags):
    small = {"clients": 8, "local_steps": 2, "threads": 1, "chunk": 2} | flags
    return [Config.from_flags("hist", rounds=rounds, seed=seed, **small) for seed in seeds]


def bare(results):
    return [without_wall(result.rows) for result in results]
