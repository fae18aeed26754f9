"""What a planned round costs each of its clients: how its seconds and joules are spent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels import Service
from channels.arrays import BoolArray, FloatArray, IntArray
from wirelessfl.air.links import takes_part
from wirelessfl.air.plan import Plan
from wirelessfl.air.served import Served

TOGETHER = 1e-6
"""Relative difference of seconds up to which clients, or cells, end together."""


@dataclass(frozen=True, eq=False)
class ClientCosts:
    """Costs of the participating clients of a global round, from its plan.

    The blocks are one for all edge rounds, or one for each. Of each edge round, a client spends the
    seconds of its download and of the pilots, then it computes, then it waits and sends. Afterwards
    it is idle until the edge round ends in its cell.

    Args:
        clients: [senders], the participating clients.
        cell: [senders], their cells.
        edge_rounds: number of edge rounds, E.
        seconds: duration of the global round.
        cell_seconds: [blocks, cells], duration of an edge round in each cell; 0 without clients.
        after_seconds: [cells], what follows the edge rounds of each cell: its backhaul.
        download: [blocks, senders], seconds before local training: download, and the cell's pilots.
        compute: [blocks, senders], seconds of local training.
        wait: [blocks, senders], seconds in which a client that has trained waits for its turn.
        send: [blocks, senders], seconds in which it sends.
        compute_joules: [blocks, senders], energy of local training.
        send_joules: [blocks, senders], energy of sending, pilots and waiting (idle power) included.
        snr_db: [blocks, senders], SNR in the whole band of the cell, all antennas combined.
        bits: [blocks, senders], bits that a client sends, repeats included.
        arrived: [blocks, senders], whether the update arrives.
        trains: [blocks, senders], whether the client takes part; an access can leave clients out.
        last: [blocks, senders], whether it is the last of its cell; several may end together.
        slowest: [senders], whether its cell is the slowest of the round.
        in_order: whether a client sends without interruption once it is its turn; otherwise it
            waits in between.
        charge: [senders], charge that the round leaves in each battery, J; None without batteries.
    """

    clients: IntArray
    cell: IntArray
    edge_rounds: int
    seconds: float
    cell_seconds: FloatArray
    after_seconds: FloatArray
    download: FloatArray
    compute: FloatArray
    wait: FloatArray
    send: FloatArray
    compute_joules: FloatArray
    send_joules: FloatArray
    snr_db: FloatArray
    bits: FloatArray
    arrived: BoolArray
    trains: BoolArray
    last: BoolArray
    slowest: BoolArray
    in_order: bool
    charge: FloatArray | None = None

    @classmethod
    def of(cls, plan: Plan) -> ClientCosts:
        """The costs of the clients of ``plan``; those that have left do not arrive."""
        served = plan.price.served
        service, load, draws = served.service, served.load, served.draws
        network, clients = draws.network, draws.network.numbers
        clocks = service.decision.cpu_hz
        clocks = network.cpu_hz if clocks is None else clocks
        trains = takes_part(service, load, network)
        arrived = _arrived(served, np.isin(clients, plan.clients))
        shape = np.broadcast_shapes(
            np.atleast_2d(service.seconds).shape, draws.h.shape[:-1], arrived.shape, load.shape
        )

        def per_client(values: FloatArray) -> FloatArray:
            return np.broadcast_to(np.asarray(values, dtype=np.float64), shape)

        computes = trains & (clocks > 0)
        cycles = np.where(computes, load.cycles, 0.0)
        compute = np.divide(
            cycles, clocks, out=np.zeros(np.broadcast_shapes(cycles.shape, clocks.shape)),
            where=cycles > 0,
        )  # fmt: skip
        compute_joules = np.minimum(
            network.switched_capacitance * clocks**2 * cycles, service.joules
        )
        download = np.where(trains, load.begin_seconds(network), 0.0)
        left = np.where(trains, np.maximum(service.seconds - download - compute, 0.0), 0.0)
        wait = left - np.minimum(_airtime(service, left), left)
        wait = np.where(wait > TOGETHER * left, wait, 0.0)  # else a rounding error
        bits = load.bits if service.transmissions is None else service.transmissions * load.bits
        seconds = per_client(service.seconds)
        cell_seconds = network.over_cells(np.maximum, seconds)
        ends = np.where(trains, seconds, 0.0) >= cell_seconds[:, network.cell_of] * (1 - TOGETHER)
        nodes = plan.price.seconds
        edge_rounds = plan.price.edge_rounds
        return cls(
            clients=clients,
            cell=network.cell_of,
            edge_rounds=edge_rounds,
            seconds=float(nodes.max()),
            cell_seconds=cell_seconds,
            after_seconds=np.maximum(nodes - edge_rounds * cell_seconds.mean(0), 0.0),
            download=per_client(download),
            compute=per_client(compute),
            wait=per_client(wait),
            send=per_client(left - wait),
            compute_joules=per_client(compute_joules),
            send_joules=per_client(service.joules - compute_joules),
            snr_db=per_client(_decibels(draws.snr * draws.gain)),
            bits=per_client(np.where(trains, bits, 0.0)),
            arrived=np.broadcast_to(arrived, shape),
            trains=np.broadcast_to(trains, shape),
            last=ends & np.broadcast_to(trains, shape),
            slowest=(nodes >= nodes.max() * (1 - TOGETHER))[network.cell_of],
            in_order=service.decision.order is not None,
            charge=None if plan.charges is None else plan.charges.of(clients),
        )

    def over_rounds(self, values: FloatArray | BoolArray) -> FloatArray:
        """Sums [senders] over the edge rounds of ``values`` [blocks, senders]."""
        return np.asarray(values.sum(0) * (self.edge_rounds / len(values)))

    @property
    def idle(self) -> FloatArray:
        """Seconds [senders] of the global round in which a client waits for others."""
        spent = self.download + self.compute + self.wait + self.send
        return np.asarray(np.maximum(self.seconds - self.over_rounds(spent), 0.0))

    @property
    def stragglers(self) -> BoolArray:
        """The clients [senders] for which the round waits.

        In the slowest cell, they are last in the most edge rounds.
        """
        last = np.where(self.slowest, self.over_rounds(self.last), 0.0)
        return np.asarray((last > 0) & (last >= last.max(initial=0.0)))

    def block(self, edge_round: int) -> int:
        """The block of an edge round."""
        return min(edge_round, len(self.compute) - 1)

    def columns(self) -> dict[str, FloatArray | IntArray]:
        """Sums over the edge rounds, and means of SNR and rate, [senders] by name."""
        send, bits = self.over_rounds(self.send), self.over_rounds(self.bits)
        rate = np.divide(bits, send, out=np.zeros_like(bits), where=send > 0)
        return {
            "client": self.clients,
            "cell": self.cell,
            "snr_db": _decibels((10 ** (self.snr_db / 10)).mean(0)),
            "rate_bps": rate,
            "download_seconds": self.over_rounds(self.download),
            "compute_seconds": self.over_rounds(self.compute),
            "wait_seconds": self.over_rounds(self.wait),
            "send_seconds": send,
            "idle_seconds": self.idle,
            "compute_joules": self.over_rounds(self.compute_joules),
            "send_joules": self.over_rounds(self.send_joules),
            "arrived": np.rint(self.over_rounds(self.arrived)).astype(np.int64),
            "last_in_cell": np.rint(self.over_rounds(self.last)).astype(np.int64),
            "straggler": self.stragglers.astype(np.int64),
            **({} if self.charge is None else {"charge_joules": self.charge}),
        }


def _arrived(served: Served, stays: BoolArray) -> BoolArray:
    """Updates [blocks, senders] that arrive from the clients that have not left."""
    arrived = np.ones((1, len(stays)), np.bool_) if served.arrived is None else served.arrived
    return arrived & stays


def _airtime(service: Service, left: FloatArray) -> FloatArray:
    """Seconds [blocks, senders] in which clients send: by default, all that is left."""
    airtime = service.airtime_seconds
    return left if airtime is None else np.where(np.isfinite(airtime), airtime, 0.0)


def _decibels(ratio: FloatArray) -> FloatArray:
    """Ratios in dB; -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(10 * np.log10(ratio))
