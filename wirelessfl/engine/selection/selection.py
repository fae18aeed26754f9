"""The interface of a selection, and what it knows about the candidates of a round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels import Access, ChannelDraw, Load, Network
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.cells import smallest_by_cell
from channels.streams import Stream
from wirelessfl.air.batteries import EnergyLimits
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import UnfitError, described, indices, returns
from wirelessfl.base.registry import Choice
from wirelessfl.engine.server.ledger import History, Ledger

AT_ONCE = 1 << 13
"""Number of candidates whose channels are drawn at once, so that they stay in the cache."""
KEPT = (np.bool_, np.int64, np.float64)
"""Types of the arrays of a selection's state."""
Losses = Callable[[IntArray, int | None], FloatArray]
"""Mean loss of the server's current model on the samples of each of some clients, whose number of
samples may be limited; see :meth:`Candidates.losses`."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The clients that can take part in a round, and how many of each cell will.

    Args:
        round: round number, from 0.
        clients: [candidates], client numbers, in increasing order.
        node: [candidates], cell of each candidate.
        counts: [cells], number of clients to select.
        network: network of the candidates, with their CPU speeds, powers and mean channel gains.
        access: how the selected clients will share the air.
        radio: whether uploads cross the radio channel.
        ledger: what each client has done so far, by client number.
        stream: random stream of this selection in this round.
        weights: [candidates], weights of the clients in the mean; None for equal weights.
        find_draw: draws the channels of some of the candidates, by client number.
        find_load: determines the load.
        find_losses: evaluates the current model.
        state: state of the selection, arrays of numbers by name, empty at the start of a run. What
            it holds after ``select`` is its state in the next round, also after a resume.
    """

    round: int
    clients: IntArray
    node: IntArray
    counts: IntArray
    network: Network
    access: Access
    radio: bool
    ledger: Ledger
    stream: Stream
    weights: FloatArray | None
    find_draw: Callable[[IntArray], ChannelDraw]
    find_load: Callable[[], Load]
    find_losses: Losses
    state: dict[str, NDArray[Any]] = field(default_factory=dict)

    @cached_property
    def history(self) -> History:
        """What each candidate has done in the rounds before: its values are [candidates].

        A loss is known from the round in which ``losses`` was called, or from the last round of a
        client whose trainer reports the metric ``train_loss``.
        """
        return self.ledger.history(self.clients)

    @cached_property
    def draw(self) -> ChannelDraw:
        """Channels of the candidates in this round, h [candidates, antennas].

        With a draw per edge round, that of the first. Of very many candidates, ``snr_hz`` takes
        less memory.
        """
        return self.find_draw(self.clients)

    def snr_hz(self, places: IntArray | None = None) -> FloatArray:
        """``draw.snr_hz`` of some candidates, by their places, or of all; drawn in blocks.

        Args:
            places: [some], increasing; None for all candidates.
        """
        clients = self.clients if places is None else self.clients[places]
        parts = [self.find_draw(clients[block]).snr_hz for block in blocks_of(len(clients))]
        return np.concatenate(parts)

    @cached_property
    def load(self) -> Load:
        """What each candidate would compute and send, [candidates].

        The submodels are those that the algorithm assigns if all candidates take part. Every client
        counts as sending tracking terms.
        """
        return self.find_load()

    def losses(self, clients: IntArray, samples: int | None = None) -> FloatArray:
        """Mean loss of the server's current model on each client's own samples, [clients].

        Args:
            clients: client numbers.
            samples: largest number of samples of a client, which are evenly spaced among its own;
                None for all.

        Raises:
            ConfigError: no model is trained, as in ``wirelessfl.price``.
        """
        return self.find_losses(clients, samples)

    def smallest(
        self,
        values: ArrayLike,
        ties: ArrayLike | Callable[[IntArray], FloatArray] | None = None,
    ) -> IntArray:
        """The candidates with the smallest values, ``counts`` of each cell.

        Args:
            values: [candidates]; infinite for clients that cannot be reached.
            ties: [candidates], decides among equal values, or a function of the places of
                candidates that are equal; None for the lower client number.
        """
        return self.where(smallest_by_cell(values, self.node, self.counts, ties))

    def where(self, chosen: BoolArray) -> IntArray:
        """Numbers of the chosen candidates; a cell that wants participants must have one if it can.

        Args:
            chosen: [candidates].
        """
        cells = len(self.counts)
        size, chosen_counts = (np.bincount(self.node[w], minlength=cells) for w in (..., chosen))
        lost = (self.counts > 0) & (size > 0) & (chosen_counts == 0)
        if lost.any():
            cell = int(lost.argmax())
            raise ConfigError(
                f"no client of cell {cell} can be reached in round {self.round + 1}: the channels "
                f"of all its {size[cell]} candidates are 0. Raise snr_db or transmit_power_w, or "
                "choose another fading model or layout."
            )
        return np.asarray(self.clients[chosen])


def blocks_of(count: int) -> Iterator[slice]:
    """Parts of ``count`` candidates whose channels are drawn at once; one if there is none."""
    return (slice(start, start + AT_ONCE) for start in range(0, max(count, 1), AT_ONCE))


def _selected(value: Any, selection: Selection, candidates: Candidates) -> IntArray:
    """Check for the wanted number of different candidates of each cell."""
    expected = f"{candidates.counts.sum()} of the candidates, candidates.counts[cell] of each cell"
    clients = np.sort(indices(value, int(candidates.clients.max(initial=0)) + 1, expected))
    if len(np.unique(clients)) < len(clients):
        raise UnfitError(f"client {clients[:-1][clients[1:] == clients[:-1]][0]} twice", expected)
    at = np.minimum(np.searchsorted(candidates.clients, clients), len(candidates.clients) - 1)
    strangers = candidates.clients[at] != clients
    if strangers.any():
        raise UnfitError(f"client {clients[strangers][0]}, which is not a candidate", expected)
    counts = np.bincount(candidates.node[at], minlength=len(candidates.counts))
    wrong = counts != candidates.counts
    if wrong.any():
        cell = int(wrong.argmax())
        raise UnfitError(
            f"{counts[cell]} clients of cell {cell} instead of {candidates.counts[cell]}", expected
        )
    for name, value in candidates.state.items():
        if not isinstance(value, np.ndarray) or value.dtype not in KEPT:
            raise UnfitError(
                f"its clients, with candidates.state[{name!r}] = {described(value)}",
                "the clients, and leave NumPy arrays of int64, float64 or bool in candidates.state",
            )
    return clients


@dataclass(frozen=True)
class Selection(Choice, ABC):
    """Base class of all selections. Its dataclass fields are its settings."""

    name = "selection"

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
        energy: budgets and batteries of the clients; None for no limits.
    """

    per_round: int | None = None
    tracking: int | None = None
    selection: Selection | None = None
    energy: EnergyLimits | None = None
