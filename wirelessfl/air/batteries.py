"""Energy of clients: budgets of the run, and batteries, which wait until they are charged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.air.participants import PresentClients, RankedClients
from wirelessfl.air.recharge import NoRecharge, Recharge

FARTHEST = 1e15
"""Seconds after which no battery is expected to be charged."""


@dataclass(frozen=True, eq=False)
class Charges:
    """Batteries of the clients that have taken part or declined; those of all others are full.

    Args:
        clients: [entries], their numbers, in order.
        joules: [entries], charge at the time ``at``.
        at: [entries], simulated seconds.
        need: [entries], charge that a client that has declined waits for, J; 0 for none.
    """

    clients: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    joules: FloatArray = field(default_factory=lambda: np.zeros(0))
    at: FloatArray = field(default_factory=lambda: np.zeros(0))
    need: FloatArray = field(default_factory=lambda: np.zeros(0))

    def of(self, clients: IntArray) -> FloatArray:
        """Stored charge of clients that have an entry, [clients] J."""
        return self.joules[np.searchsorted(self.clients, clients)]

    def of_rows(self, rows: IntArray | BoolArray) -> Charges:
        """Some of the entries."""
        return Charges(self.clients[rows], self.joules[rows], self.at[rows], self.need[rows])


@dataclass(frozen=True, eq=False)
class EnergyLimits:
    """What limits the energy of clients in a run.

    A client that has spent its budget no longer takes part; its last round may exceed it. A
    client whose battery holds less than the round that it was chosen for takes declines. It is
    chosen again when the battery holds what that round would have taken, or never.

    Args:
        budget: [clients] or one for all, energy for the whole run, J; None for no limit.
        capacity: [clients] or one for all, energy of a full battery, J; None for no batteries.
        recharge: what recharges batteries, which start full.
        drops: whether a client that has declined never takes part again.
        stream: random stream of the sources.
    """

    budget: float | FloatArray | None = None
    capacity: float | FloatArray | None = None
    recharge: Recharge = field(default_factory=NoRecharge)
    drops: bool = False
    stream: Stream = field(default_factory=lambda: Stream(0, ("recharge",)))

    @property
    def names(self) -> list[str]:
        """Names of the settings that limit energy."""
        limits = {"client_joules": self.budget, "battery_joules": self.capacity}
        return [name for name, limit in limits.items() if limit is not None]

    def full(self, clients: IntArray) -> FloatArray:
        """Energy of the full batteries of clients, [clients] J."""
        assert self.capacity is not None, "clients have batteries"
        if isinstance(self.capacity, np.ndarray):
            return self.capacity[clients]
        return np.full(len(clients), self.capacity)

    def charge(self, charges: Charges, now: float) -> FloatArray:
        """Charge of the batteries at a time not before theirs, [entries] J."""
        more = self.recharge.joules(charges.clients, charges.at, now, self.stream)
        return np.minimum(charges.joules + more, self.full(charges.clients))

    def able(
        self,
        clients: int,
        spent: FloatArray | None,
        charges: Charges,
        now: float,
        present: RankedClients | None,
    ) -> RankedClients | None:
        """The present clients that have energy for a round.

        Args:
            clients: number of clients of the network.
            spent: [clients], energy that each has spent; None if budgets do not matter yet.
            charges: batteries.
            now: simulated time, s.
            present: clients that are present; None for all.

        Returns:
            ``present`` itself if all clients can take part.
        """
        unable = self._waiting(charges, now)
        if (self.budget is None or spent is None) and not len(unable):
            return present
        able = np.ones(clients, np.bool_)
        if self.budget is not None and spent is not None:
            able = spent < self.budget
        able[unable] = False
        if able.all():
            return present
        if present is not None:
            here = np.zeros(clients, dtype=np.bool_)
            here[present.at(np.arange(int(present.below([clients])[0])))] = True
            able &= here
        return PresentClients(able)

    def _waiting(self, charges: Charges, now: float) -> IntArray:
        """Clients that have declined, and are not charged yet."""
        if not charges.need.any():
            return charges.clients[:0]
        return charges.clients[charges.need > self.charge(charges, now)]

    def short(
        self, charges: Charges, clients: IntArray, joules: FloatArray, now: float
    ) -> BoolArray:
        """Whether the battery of each of these clients holds less than ``joules``."""
        rows, charges = self._with(charges, clients, now)
        return np.asarray(joules > charges.joules[rows])

    def after(
        self,
        charges: Charges,
        clients: IntArray,
        now: float,
        *,
        spent: FloatArray | float = 0.0,
        need: FloatArray | float = 0.0,
    ) -> Charges:
        """The batteries after these clients have started a round, or declined it.

        Args:
            charges: batteries before.
            clients: client numbers.
            now: start of the round, s.
            spent: [clients], what the round takes, J.
            need: [clients], what the round would have taken from those that decline; 0 for others.
        """
        rows, charges = self._with(charges, clients, now)
        charges.joules[rows] -= spent
        charges.need[rows] = np.where(np.greater(need, 0) & self.drops, np.inf, need)
        return charges

    def _with(self, charges: Charges, clients: IntArray, now: float) -> tuple[IntArray, Charges]:
        """Places of these clients, and the batteries with entries of them at ``now``."""
        new = np.sort(np.setdiff1d(clients, charges.clients, assume_unique=True))
        at = np.searchsorted(charges.clients, new)
        charges = Charges(
            np.insert(charges.clients, at, new),
            np.insert(charges.joules, at, self.full(new)),
            np.insert(charges.at, at, now),
            np.insert(charges.need, at, 0.0),
        )
        rows = np.searchsorted(charges.clients, clients)
        charges.joules[rows] = self.charge(charges.of_rows(rows), now)
        charges.at[rows] = now
        return rows, charges

    def next_charged(self, charges: Charges, now: float) -> float:
        """When the first client that waits is charged, s; infinity if none ever is."""
        if self.capacity is None or self.recharge.never:
            return np.inf
        some = charges.of_rows(charges.need <= self.full(charges.clients))
        some = some.of_rows(some.need > self.charge(some, now))

        def later(then: Charges, until: float) -> Charges | None:
            """Their charges later; None if one has enough."""
            joules = self.charge(then, until)
            if (then.need <= joules).any():
                return None
            return replace(then, joules=joules, at=np.full(len(joules), until))

        # The search goes on from charges that do not suffice, as energy is added up in time.
        low, high, before = now, now + 1e-6, some
        while (then := later(before, high)) is not None:
            if not len(some.clients) or high - now > FARTHEST:
                return np.inf
            low, high, before = high, now + 2 * (high - now), then
        while (middle := low + (high - low) / 2) not in (low, high):
            if (then := later(before, middle)) is None:
                high = middle
            else:
                low, before = middle, then
        gap = float(np.spacing(high))  # parts add up to the whole but for rounding
        while later(some, high) is not None:
            high, gap = high + gap, 2 * gap
        return high

    def row(self, clients: int, charges: Charges, now: float) -> dict[str, float]:
        """Fields of a row: least and mean charge, and number of clients that wait or have left."""
        if self.capacity is None:
            return {}
        charge = self.charge(charges, now)
        full = np.delete(np.broadcast_to(self.capacity, clients), charges.clients)
        # Devices on mains have no end.
        limited = charge[charge < np.inf], full[full < np.inf]
        count = sum(map(len, limited))
        if not count:
            return {"empty": 0}
        return {
            "charge_min": float(min(part.min(initial=np.inf) for part in limited)),
            "charge_mean": float(sum(part.sum() for part in limited)) / count,
            "empty": int(np.count_nonzero(charges.need > charge)),
        }

    def why(self, charges: Charges) -> str:
        """Why no client can take part any more."""
        if not charges.need.any():
            if isinstance(self.budget, float):
                return f"all clients have spent client_joules={self.budget:g}"
            return "all clients have spent their client_joules"
        budgets = "" if self.budget is None else ", or have spent client_joules"
        return f"the batteries of all clients hold less than a round takes{budgets}"
