"""Rank of this process among those that torchrun has started."""

from __future__ import annotations

import os
from collections.abc import Mapping

from wirelessfl.base.errors import ConfigError


def launched(environment: Mapping[str, str] | None = None) -> tuple[int, int]:
    """Rank of this process and number of processes started by ``torchrun``; (0, 1) without it."""
    environment = os.environ if environment is None else environment
    rank, count = environment.get("RANK"), environment.get("WORLD_SIZE")
    if not (rank and count):
        return 0, 1
    if not (rank.isdecimal() and count.isdecimal() and int(rank) < int(count)):
        raise ConfigError(
            f"RANK is {rank!r} and WORLD_SIZE {count!r}: torchrun sets them to whole numbers "
            "0 <= RANK < WORLD_SIZE. Unset both, or start with torchrun."
        )
    return int(rank), int(count)
