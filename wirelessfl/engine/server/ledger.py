"""What clients have done, spent and sent in a run so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from channels.arrays import BoolArray, FloatArray, IntArray
from wirelessfl.air.batteries import Charges
from wirelessfl.air.links import TrainingSettings
from wirelessfl.air.plan import Plan
from wirelessfl.air.uplinks import Uplink

PREFIX = "ledger."
"""Prefix of the names of a ledger's tensors in a checkpoint."""
STATE = f"{PREFIX}state."
"""Prefix of those of the selection's state."""
CHARGES = f"{PREFIX}charges."
"""Prefix of those of the batteries."""


Log = Callable[[Plan, bool], None]
"""Takes each round that is counted, and whether it is a trial round."""


@dataclass
class Totals:
    """Running totals of the costs of rounds.

    Args:
        uplink_mib, downlink_mib, backhaul_mib, joules, lost, silent: see ``Price``; ``joules`` is
            None if energy is not counted, because beamformers over the air take time to optimise.
        round_seconds: durations of the rounds, or of cells' rounds; None unless the uplink compares
            its decisions with equal shares.
        equal_seconds, equal_joules: durations and joules of the same rounds with equal shares.
        late: see ``Price``; None unless rounds have a cut-off.
    """

    uplink_mib: float = 0.0
    downlink_mib: float = 0.0
    backhaul_mib: float = 0.0
    joules: float | None = 0.0
    lost: int = 0
    silent: int = 0
    round_seconds: float | None = None
    equal_seconds: float | None = None
    equal_joules: float | None = None
    late: int | None = None

    @classmethod
    def of(cls, uplink: Uplink, settings: TrainingSettings, *, joules: bool = True) -> Self:
        """Totals of no rounds; without ``joules``, neither energy nor equal shares are counted."""
        none = 0.0 if joules and uplink.equal_shares is not None else None
        late = None if settings.cutoff_seconds is None else 0
        return cls(
            joules=0.0 if joules else None,
            round_seconds=none,
            equal_seconds=none,
            equal_joules=none,
            late=late,
        )

    def add(self, plan: Plan) -> None:
        """Add the cost of a round."""
        price = plan.price
        for name in ("uplink_mib", "downlink_mib", "backhaul_mib", "lost", "silent"):
            setattr(self, name, getattr(self, name) + getattr(price, name))
        if price.late is not None:
            self.late = (self.late or 0) + price.late
        if self.joules is None:
            return
        self.joules += price.joules
        equal = price.equal
        if equal is None:
            return
        self.round_seconds = (self.round_seconds or 0.0) + float(plan.price.seconds.max())
        self.equal_seconds = (self.equal_seconds or 0.0) + float(equal.seconds.max())
        self.equal_joules = (self.equal_joules or 0.0) + equal.joules

    def row(self) -> dict[str, float]:
        """The totals that the run has, by name, for rows and checkpoints."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, eq=False)
class History:
    """What some clients have done in the rounds so far, one value each, [clients].

    Args:
        joules: energy for training and sending, J, of all rounds.
        seconds: time from the start of each edge round until the client has sent, s, of all rounds.
        last_joules: energy of its last round, J; NaN if it has not taken part, or energy is not
            counted.
        last_seconds: time of its last round, s; NaN if it has not taken part.
        times_chosen: number of rounds in which it took part.
        times_heard: number of rounds from which an update arrived.
        since_chosen: rounds since it took part, 1 if in the last round; for a client that has not
            taken part, two more than all rounds so far.
        since_heard: rounds since an update arrived, as ``since_chosen``.
        loss: its last known mean loss; NaN if none is known.
        loss_change: this loss minus the one known before; NaN unless two are known.
    """

    joules: FloatArray
    seconds: FloatArray
    last_joules: FloatArray
    last_seconds: FloatArray
    times_chosen: IntArray
    times_heard: IntArray
    since_chosen: IntArray
    since_heard: IntArray
    loss: FloatArray
    loss_change: FloatArray


ENTRIES: dict[str, Any] = {
    "joules": 0.0,
    "seconds": 0.0,
    "last_joules": np.nan,
    "last_seconds": np.nan,
    "chosen": 0,
    "heard": 0,
    "times_chosen": 0,
    "times_heard": 0,
    "loss": np.nan,
    "loss_change": np.nan,
}
"""What the ledger stores of a client, by name, and the value of a client without an entry."""


class Ledger:
    """Costs of rounds: their totals, and joules, participation and arrivals of each client.

    It covers training and trial rounds. Clients that have neither taken part nor been asked for a
    loss need no memory.

    Args:
        clients: number of clients of the network.
        totals: those of no rounds; None to count all costs.
    """

    def __init__(self, clients: int, totals: Totals | None = None) -> None:
        self.clients, self.totals = clients, Totals() if totals is None else totals
        self.log: Log | None = None
        """Takes each round that is counted."""
        self.rounds = 0
        """Number of rounds in the ledger."""
        self._seen: IntArray = np.zeros(0, dtype=np.int64)
        """[seen], the clients with an entry, in order."""
        self._of: dict[str, NDArray[Any]] = {
            name: np.zeros(0, dtype=type(value)) for name, value in ENTRIES.items()
        }
        """Their entries [seen], by name."""
        self.charges = Charges()
        """Batteries, after the start of the last round in the ledger."""
        self.state: dict[str, NDArray[Any]] = {}
        """State of the selection, after the last round in the ledger."""

    @property
    def joules(self) -> FloatArray:
        """Energy of each client for training and sending, [clients]; a copy."""
        return self._of_all("joules")

    @property
    def chosen(self) -> IntArray:
        """The last round, from 1, in which each client took part; 0 for none; [clients], a copy."""
        return self._of_all("chosen")

    @property
    def heard(self) -> IntArray:
        """The last round, from 1, from which an update of each client arrived, as ``chosen``."""
        return self._of_all("heard")

    @property
    def most_joules(self) -> float:
        """Energy of the client that has used the most."""
        return float(self._of["joules"].max(initial=0.0))

    def history(self, clients: IntArray) -> History:
        """What these clients, in any order, have done so far."""
        at = np.searchsorted(self._seen, clients)
        at[at == len(self._seen)] = 0
        seen = self._seen[at] == clients if len(self._seen) else np.zeros(len(clients), np.bool_)
        values = {name: np.full(len(clients), value) for name, value in ENTRIES.items()}
        for name, value in values.items():
            value[seen] = self._of[name][at[seen]]
        for name in ("chosen", "heard"):
            last = values.pop(name)
            values[f"since_{name}"] = self.rounds + 1 - last + (last == 0)
        return History(**values)

    def count(self, plan: Plan, *, trial: bool = False) -> None:
        """Add the cost of a round, and log it; keep what its selection has learnt.

        Args:
            plan: the round.
            trial: whether it is a trial round.
        """
        self.totals.add(plan)
        heard = plan.clients
        if plan.arrivals is not None:
            heard = heard[plan.arrivals.any(0)]
        clients = plan.price.served.draws.network.numbers
        joules = None if self.totals.joules is None else plan.price.client_joules
        if plan.charges is not None:
            self.charges = plan.charges
        if plan.learnt is not None:
            self.state = dict(plan.learnt.state)
            if plan.learnt.losses:
                some, losses = zip(*reversed(plan.learnt.losses), strict=True)
                self.know(np.concatenate(some), np.concatenate(losses))
        self.add(clients, joules, np.isin(clients, heard), plan.price.client_seconds)
        if self.log is not None:
            self.log(plan, trial)

    def row(self) -> dict[str, float]:
        """The totals, and the energy of the client that has used the most, as in rows."""
        return self.totals.row() | {"joules_max": self.most_joules}

    def add(
        self,
        clients: IntArray,
        joules: FloatArray | None,
        arrived: BoolArray,
        seconds: FloatArray | None = None,
    ) -> None:
        """Add a round of these clients, without its totals.

        Args:
            clients: [senders], the participating clients.
            joules: [senders], energy of each in this round; None if it is not counted.
            arrived: [senders] boolean, clients of which an update arrived.
            seconds: [senders], time that each took; None if it is not counted.
        """
        self.rounds += 1
        rows, of = self._rows(clients), self._of
        for name, some in (("chosen", rows), ("heard", rows[arrived])):
            of[name][some] = self.rounds
            of[f"times_{name}"][some] += 1
        for name, values in (("joules", joules), ("seconds", seconds)):
            if values is not None:
                with np.errstate(over="ignore"):  # rows say that the sum is infinite
                    of[name][rows] += values
                of[f"last_{name}"][rows] = values

    def know(self, clients: IntArray, losses: FloatArray) -> None:
        """Set the losses of clients, in any order; of several losses of a client, the first."""
        some, first = np.unique(clients, return_index=True)
        rows, losses = self._rows(some), losses[first]
        self._of["loss_change"][rows] = losses - self._of["loss"][rows]
        self._of["loss"][rows] = losses

    def _rows(self, clients: IntArray) -> IntArray:
        """Places of the entries of these clients; new ones are added."""
        new = np.sort(np.setdiff1d(clients, self._seen, assume_unique=True))
        if new.size:
            at = np.searchsorted(self._seen, new)
            self._seen = np.insert(self._seen, at, new)
            for name, value in ENTRIES.items():
                self._of[name] = np.insert(self._of[name], at, value)
        return np.searchsorted(self._seen, clients)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The ledger for a checkpoint: entries of clients, and the state of the selection."""
        values = {"clients": self._seen, **self._of, "rounds": np.array(self.rounds)}
        tensors = {f"{PREFIX}{name}": value for name, value in values.items()}
        tensors |= {f"{STATE}{name}": value for name, value in self.state.items()}
        if len(self.charges.clients):
            tensors |= {f"{CHARGES}{name}": value for name, value in vars(self.charges).items()}
        return {name: torch.from_numpy(value.copy()) for name, value in tensors.items()}

    def restore(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Continue from the result of ``tensors``; other tensors are ignored."""
        arrays = {name: tensors[f"{PREFIX}{name}"].numpy().copy() for name in ("clients", *ENTRIES)}
        if len({array.shape for array in arrays.values()}) > 1:
            raise ValueError("the ledger of the clients has arrays of different lengths")
        self.rounds = int(tensors[f"{PREFIX}rounds"])
        self._seen, self._of = arrays.pop("clients"), arrays
        self.state, charges = (
            {
                name.removeprefix(prefix): value.numpy().copy()
                for name, value in tensors.items()
                if name.startswith(prefix)
            }
            for prefix in (STATE, CHARGES)
        )
        self.charges = Charges(**charges)

    def _of_all(self, name: str) -> NDArray[Any]:
        """The entries at all clients, [clients]; 0 at the others."""
        whole = np.zeros(self.clients, dtype=self._of[name].dtype)
        whole[self._seen] = self._of[name]
        return whole


@dataclass
class ExtraCosts:
    """Running totals of the extra costs of warm starts, and of dropped updates.

    Args:
        extra_rounds: number of trial rounds.
        extra_uploads: number of client uploads in trial rounds.
        extra_broadcasts: number of broadcasts of a model for a trial round, or of a teacher.
        extra_seconds: simulated seconds of trial rounds and teacher broadcasts.
        extra_mib: uplink and downlink traffic of trial rounds and teacher broadcasts, mean over
            registered clients.
        dropped: number of updates of clients that left during a round.
    """

    extra_rounds: int = 0
    extra_uploads: int = 0
    extra_broadcasts: int = 0
    extra_seconds: float = 0.0
    extra_mib: float = 0.0
    dropped: int = 0

    def add_trial(self, plan: Plan) -> None:
        """Add the costs of a trial round."""
        self.extra_rounds += 1
        self.extra_uploads += plan.edge_rounds * len(plan.clients)
        self.extra_broadcasts += 1
        self.extra_seconds += float(plan.price.seconds.max())
        self.extra_mib += plan.price.uplink_mib + plan.price.downlink_mib


SPENT = "spending."
"""Prefix of the names of its tensors in a checkpoint."""


@dataclass(eq=False)
class Spending:
    """Joules of each client and of all of them.

    Args:
        each: [clients], joules of each client.
        total: joules of all clients, summed in the order in which they were added, so it may differ
            from the sum of ``each`` by rounding.
    """

    each: FloatArray
    total: float = 0.0

    @classmethod
    def none(cls, clients: int) -> Spending:
        """No energy yet, for this number of clients."""
        return cls(np.zeros(clients))

    @property
    def most(self) -> float:
        """Joules of the client that has used the most."""
        return float(self.each.max())

    def add(self, client: int, joules: float) -> None:
        """Add the energy of one client."""
        if joules:  # an entry of an array is slow to change
            self.total += joules
            self.each[client] += joules

    def include(self, clients: IntArray, other: Spending) -> None:
        """Add the energy of a group.

        Args:
            clients: [members], different clients.
            other: energy of each of them.
        """
        self.total += other.total
        self.each[clients] += other.each

    def part(self, seconds: float, whole: float) -> Spending:
        """Energy of the first ``seconds`` of a transmission that takes ``whole`` seconds."""
        return Spending(self.each * seconds / whole, self.total * seconds / whole)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The energy for a checkpoint: entries of the clients that have used some."""
        clients = np.flatnonzero(self.each)
        values = {"clients": clients, "each": self.each[clients], "total": np.array(self.total)}
        return {f"{SPENT}{name}": torch.from_numpy(value) for name, value in values.items()}

    def restore(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Continue from the result of ``tensors``; other tensors are ignored."""
        self.total = float(tensors[f"{SPENT}total"])
        self.each[:] = 0
        self.each[tensors[f"{SPENT}clients"].numpy()] = tensors[f"{SPENT}each"].numpy()


@dataclass(eq=False)
class TaskLedger:
    """Costs of tasks: what each has sent, lost and merged, and the energy of the clients.

    Args:
        spent: energy of the clients.
        merges: [tasks], merges of each model.
        issued, returned: [tasks], number of requests, and of updates that have returned.
        lost, late: [tasks], number of updates of clients that dropped out, or missed a cut-off.
        up, down: [tasks], bits of returned updates and of sent models.
    """

    spent: Spending
    merges: list[int]
    issued: list[int]
    returned: list[int]
    lost: list[int]
    late: list[int]
    up: list[float]
    down: list[float]

    @classmethod
    def none(cls, tasks: int, clients: int) -> TaskLedger:
        """No costs yet."""
        counts: dict[str, Any] = {name: [0] * tasks for name in COUNTS}
        return cls(Spending.none(clients), **counts)

    def snapshot(self) -> dict[str, Any]:
        """The counts, without the energy, which is in tensors."""
        return {name: getattr(self, name) for name in COUNTS}

    def restore(self, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Any]) -> None:
        """Continue from ``snapshot`` and the tensors of ``spent``."""
        for name in COUNTS:
            setattr(self, name, list(state[name]))
        self.spent.restore(tensors)


COUNTS = ("merges", "issued", "returned", "lost", "late", "up", "down")
