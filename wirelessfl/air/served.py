"""The edge rounds of a global round, served by an access: seconds, joules, and what arrives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from channels import Access, ChannelDraw, Load, Service
from channels.arrays import BoolArray, FloatArray
from channels.streams import Stream
from solvers import DeadlineMissedError
from wirelessfl.air.delivery import cut_off, delivered, late_updates, with_waiting
from wirelessfl.air.failures import Failures
from wirelessfl.air.uplinks.checked import serving
from wirelessfl.base.errors import ConfigError


@dataclass(frozen=True, eq=False)
class Served:
    """A load on its channel draws; it is served when a result is needed.

    Args:
        access: the uplink's access.
        load: what each client does in an edge round.
        draws: channels of the clients, in blocks.
        title: uplink and round, for errors.
        edge_rounds: number of edge rounds.
        stream: randomness of failures.
        silent: [blocks, senders] boolean, clients that send nothing; None for none.
        failures: which uploads fail; None for none.
        cutoff: seconds after which an edge round ends without the updates that are missing; None if
            it waits for all.
    """

    access: Access
    load: Load
    draws: ChannelDraw
    title: str
    edge_rounds: int
    stream: Stream
    silent: BoolArray | None = None
    failures: Failures | None = None
    cutoff: float | None = None

    @cached_property
    def service(self) -> Service:
        """Seconds, joules, arrivals and the decision of the edge rounds, up to the cut-off.

        Raises:
            ConfigError: the access cannot serve the load.
        """
        service, network = self.whole, self.draws.network
        if self.cutoff is not None:
            service = cut_off(service, self.load, network, self.cutoff)
        return with_waiting(service, self.load, network)

    @property
    def late(self) -> BoolArray | None:
        """Updates that miss the cut-off, [blocks, senders]; None without a cut-off."""
        if self.cutoff is None:
            return None
        return late_updates(self.whole, self.load, self.draws.network, self.cutoff)

    @cached_property
    def whole(self) -> Service:
        """The edge rounds without a cut-off.

        Raises:
            ConfigError: the access cannot serve the load.
        """
        with serving(self.title):
            try:
                return delivered(
                    self.access,
                    self.load,
                    self.draws,
                    self.failures,
                    self.edge_rounds,
                    self.stream,
                    np.inf if self.cutoff is None else self.cutoff,
                )
            except DeadlineMissedError as missed:
                if np.isinf(self.load.deadline_seconds).all():
                    raise  # a deadline of the access, not of the uplink's settings
                blocks = self.draws.h.shape[0] > 1
                where = f" in edge round {missed.item[0] + 1}" if blocks else ""
                message = missed.message("round_deadline", where=where, times=self.edge_rounds)
                raise ConfigError(f"{self.title}: {message}") from None

    @property
    def seconds(self) -> FloatArray:
        """Seconds [..., senders] of the edge rounds."""
        if self._quick:
            with serving(self.title):
                return self.access.seconds(self.load, self.draws)
        return self.service.seconds

    @cached_property
    def arrived(self) -> BoolArray | None:
        """Updates that arrive, [blocks, senders]; None if all do.

        The blocks are one for all edge rounds, or one for each.
        """
        arrived = np.ones((1, len(self.draws.network.numbers)), dtype=np.bool_)
        if not self._quick:  # else all that are sent arrive
            arrived = arrived & self.service.arrived
        if self.silent is not None:
            arrived = arrived & ~self.silent
        return None if arrived.all() else arrived

    @property
    def transmissions(self) -> FloatArray | None:
        """How often each client sends its update, [blocks, senders]; None for once each."""
        return None if self._quick else self.service.transmissions

    @property
    def _quick(self) -> bool:
        """Whether seconds cost much less than the whole service."""
        return self.access.costly and self.cutoff is None

    def count(self, which: BoolArray | None) -> int:
        """Number of updates in all edge rounds that are marked in ``which`` [blocks, senders]."""
        if which is None:
            return 0
        return int(which.sum()) * (self.edge_rounds if len(which) == 1 else 1)
