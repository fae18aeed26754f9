"""What a selection knows about a round: its candidates, their channels, loads, losses and past."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from channels import Access, ChannelDraw, Load, Network
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.cells import smallest_by_cell
from channels.streams import Stream
from wirelessfl.errors import ConfigError
from wirelessfl.server.ledger import Ledger

AT_ONCE = 1 << 15
"""Number of candidates whose channels are drawn at once, to bound memory."""
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

        Raises:
            ConfigError: no candidate of a cell can be reached.
        """
        return self.where(smallest_by_cell(values, self.node, self.counts, ties))

    def where(self, chosen: BoolArray) -> IntArray:
        """Numbers of the chosen candidates; a cell that wants participants must have one if it can.

        Args:
            chosen: [candidates].

        Raises:
            ConfigError: none is chosen in a cell.
        """
        cells = len(self.counts)
        size, found = (np.bincount(self.node[w], minlength=cells) for w in (..., chosen))
        lost = (self.counts > 0) & (size > 0) & (found == 0)
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
