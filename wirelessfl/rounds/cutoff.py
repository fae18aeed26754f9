"""Edge rounds that end at a cut-off time: updates that arrive later are left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from channels import Decision, Load, Network, Service
from channels.arrays import BoolArray, FloatArray
from wirelessfl.rounds.equal_shares import takes_part


def late_updates(service: Service, load: Load, cutoff: float) -> BoolArray:
    """Updates that are still on their way at the cut-off, [..., clients].

    Args:
        service: the edge rounds without a cut-off.
        load: what each client does.
        cutoff: seconds from the start of an edge round.
    """
    sends = np.broadcast_to(load.bits > 0, service.seconds.shape)
    return np.asarray(sends & takes_part(service) & (service.seconds > cutoff))


def cut_off(service: Service, load: Load, network: Network, cutoff: float) -> Service:
    """The service of edge rounds that end ``cutoff`` seconds after their start.

    Late clients finish their local steps, and spend the energy of these in full. They transmit
    until the cut-off, and then stop: energy and transmitted elements are those of this part of the
    upload. In turns (with a decided order) a client transmits at the end of its seconds; otherwise
    its transmission is spread evenly over the seconds after its local steps.

    Args:
        service: the edge rounds without a cut-off.
        load: what each client does.
        network: the clients.
        cutoff: seconds from the start of an edge round.

    Returns:
        Service in which late updates do not arrive; no edge round outlasts the cut-off.
    """
    late = late_updates(service, load, cutoff)
    if not late.any():
        return service
    computing = _compute_joules(service, load, network)
    sending = np.maximum(service.joules - computing, 0.0)
    begin = begin_seconds(service, load, network)
    length = service.seconds - begin
    # An upload that would never end is not sent; see ``channels.Service``.
    part = np.zeros(np.broadcast_shapes(late.shape, length.shape))
    np.divide(cutoff - begin, length, out=part, where=late & (length > 0) & np.isfinite(length))
    share = np.where(late, np.clip(part, 0.0, 1.0), 1.0)
    joules = np.where(late, computing + share * sending, service.joules)
    times = share if service.transmissions is None else share * service.transmissions
    return replace(
        service,
        seconds=np.where(late, cutoff, service.seconds),
        joules=joules,
        arrived=np.asarray(service.arrived & ~late),
        transmissions=times,
    )


def begin_seconds(service: Service, load: Load, network: Network) -> FloatArray:
    """When clients begin to transmit, [..., clients]: after their local steps, or in their turn.

    Args:
        service: the edge rounds without a cut-off.
        load: what each client does.
        network: the clients.
    """
    ready = np.asarray(load.start_seconds + training_seconds(load, network, service.decision))
    if service.decision.order is None:
        return ready
    # A client that waits for its turn does not transmit yet.
    powers = service.decision.powers_w
    sending = service.joules - _compute_joules(service, load, network)
    airtime = sending / (network.transmit_power_w if powers is None else powers)
    return np.asarray(np.maximum(ready, service.seconds - airtime))


def _compute_joules(service: Service, load: Load, network: Network) -> FloatArray:
    """Energy of the local steps at the decided clocks, [..., clients]."""
    decided = service.decision.cpu_hz
    clocks = network.cpu_hz if decided is None else decided
    return np.asarray(network.switched_capacitance * clocks**2 * load.cycles)


def training_seconds(load: Load, network: Network, decision: Decision) -> FloatArray:
    """Seconds of the local steps [..., clients]; 0 for a client that an access has left out."""
    clocks = network.cpu_hz if decision.cpu_hz is None else decision.cpu_hz
    trains = (load.cycles > 0) & (clocks > 0)
    return np.divide(load.cycles, clocks, out=np.zeros(trains.shape), where=trains)
