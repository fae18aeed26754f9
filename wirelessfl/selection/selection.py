"""The interface of a selection: which of a round's candidates take part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from channels.arrays import IntArray
from wirelessfl.guard import UnfitError, returns
from wirelessfl.registry import Choice
from wirelessfl.returned import indices
from wirelessfl.selection.candidates import Candidates


def _selected(value: Any, selection: Selection, candidates: Candidates) -> IntArray:
    """Check for the wanted number of different candidates of each cell."""
    wanted = f"{candidates.counts.sum()} of the candidates, candidates.counts[cell] of each cell"
    found = np.sort(indices(value, int(candidates.clients.max(initial=0)) + 1, wanted))
    if len(np.unique(found)) < len(found):
        raise UnfitError(f"client {found[:-1][found[1:] == found[:-1]][0]} twice", wanted)
    at = np.minimum(np.searchsorted(candidates.clients, found), len(candidates.clients) - 1)
    other = candidates.clients[at] != found
    if other.any():
        raise UnfitError(f"client {found[other][0]}, which is not a candidate", wanted)
    counts = np.bincount(candidates.node[at], minlength=len(candidates.counts))
    wrong = counts != candidates.counts
    if wrong.any():
        cell = int(wrong.argmax())
        raise UnfitError(
            f"{counts[cell]} clients of cell {cell} instead of {candidates.counts[cell]}", wanted
        )
    return found


@dataclass(frozen=True)
class Selection(Choice, ABC):
    """Base class of all selections. Its dataclass fields are its settings."""

    unbiased: ClassVar[bool] = False
    """Whether all clients take part equally often, so that on average the mean over the
    participants is that over all clients."""
    radio: ClassVar[bool] = False
    """Whether it needs channels, which not every uplink has."""
    wants_losses: ClassVar[bool] = False
    """Whether it needs losses of the current model, which are not known without training."""

    def check(self, per_round: int, cells: int) -> None:
        """Raise an error if the settings do not fit the run.

        Args:
            per_round: number of participants of a round.
            cells: number of cells.

        Raises:
            ConfigError: they do not fit; the message names the setting.
        """

    @returns(_selected)
    @abstractmethod
    def select(self, candidates: Candidates) -> IntArray:
        """Return the numbers of the clients that take part, in any order.

        Args:
            candidates: the clients to choose from, and how many of each cell to choose.

        Raises:
            ConfigError: a cell has no client that can take part.
        """


@dataclass(frozen=True)
class Participation:
    """How many clients take part in a round, and which.

    Args:
        per_round: S; None for all clients.
        tracking: S_tilde, number of participants that send tracking terms; None for all.
        selection: which of the clients take part; None for uniformly random ones, which are drawn
            without arrays over all clients.
        client_joules: energy that a client may spend; None for no limit. A client that has spent it
            no longer takes part.
    """

    per_round: int | None = None
    tracking: int | None = None
    selection: Selection | None = None
    client_joules: float | None = None
