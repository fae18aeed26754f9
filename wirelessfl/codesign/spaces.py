"""The numbers among which a design chooses: local steps, edge rounds, clients per round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.wording import shown

LOCAL_STEPS = (2, 3, 5, 7, 10, 14, 20, 28, 40)
EDGE_ROUNDS = (1, 2, 3, 4, 5, 7, 10)


@dataclass(frozen=True)
class Space:
    """Numbers to choose from, in increasing order.

    Args:
        local_steps: H.
        edge_rounds: E.
        clients: S, clients per round; None stands for all clients.
    """

    local_steps: tuple[int, ...]
    edge_rounds: tuple[int, ...]
    clients: tuple[int | None, ...]

    @classmethod
    def of(
        cls,
        config: Config,
        local_steps: Any,
        edge_rounds: Any,
        clients: Any,
        number: int,
    ) -> Space:
        """The space of these arguments of ``wirelessfl.design``.

        Args:
            config: settings whose numbers are always considered unless others are given.
            local_steps, edge_rounds, clients: given numbers; None for the default ones.
            number: number of clients of the network.

        Raises:
            ConfigError: a number is wrong.
        """
        edges = config.training.edge_rounds or 1
        default: dict[str, set[int]] = {
            "local_steps": {*LOCAL_STEPS, config.training.local_steps},
            "edge_rounds": {*EDGE_ROUNDS, edges},
        }
        steps = (
            default["local_steps"] if local_steps is None else numbers("local_steps", local_steps)
        )
        rounds = (
            default["edge_rounds"] if edge_rounds is None else numbers("edge_rounds", edge_rounds)
        )
        some: tuple[int | None, ...] = (config.training.clients_per_round,)
        if clients is not None:
            several = sorted(numbers("clients_per_round", clients))
            most = several[-1]
            if most > number:
                raise ConfigError(
                    f"clients_per_round contains {most}: the network has {number} clients."
                )
            some = tuple(None if count == number else count for count in several)
        return cls(tuple(sorted(steps)), tuple(sorted(rounds)), some)


def numbers(name: str, given: Any) -> set[int]:
    """Given integers >= 1, one or several.

    Args:
        name: the argument.
        given: its value.

    Raises:
        ConfigError: one of them is not.
    """
    listed = given if isinstance(given, Sequence | np.ndarray) and len(given) else [given]
    if isinstance(given, str) or not all(_whole(number) and number >= 1 for number in listed):
        raise ConfigError(f"{name} is {shown(given)}: give integers >= 1, e.g. 5,10,20.")
    return {int(number) for number in listed}


def _whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)
