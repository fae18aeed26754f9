"""Which updates of a round arrive, by when, and what it costs to send them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from channels import Access, ChannelDraw, Decision, Load, Network, Service
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.modulation import effective_snr
from channels.streams import Stream
from wirelessfl.air.failures import Failures
from wirelessfl.air.links import takes_part


def late_updates(service: Service, load: Load, network: Network, cutoff: float) -> BoolArray:
    """Updates that are still on their way at the cut-off, [..., clients].

    Args:
        service: the edge rounds without a cut-off.
        load: what each client does.
        network: the clients.
        cutoff: seconds from the start of an edge round.
    """
    sends = np.broadcast_to(load.bits > 0, service.seconds.shape)
    return np.asarray(sends & takes_part(service, load, network) & (service.seconds > cutoff))


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
    late = late_updates(service, load, network, cutoff)
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
    begin, training = load.begin_seconds(network), training_seconds(load, network, service.decision)
    ready = np.asarray(begin + training)
    if service.decision.order is None:
        return ready
    # A client that waits for its turn does not transmit yet.
    powers = service.decision.powers_w
    sending = service.joules - _compute_joules(service, load, network)
    airtime = sending / (network.sending_watts() if powers is None else powers)
    return np.asarray(np.maximum(ready, service.seconds - airtime))


def _compute_joules(service: Service, load: Load, network: Network) -> FloatArray:
    """Energy of pilots, and of local steps at the decided clocks, [..., clients]."""
    decided = service.decision.cpu_hz
    clocks = network.cpu_hz if decided is None else decided
    computing = network.switched_capacitance * clocks**2 * load.cycles
    return np.asarray(load.pilot_joules(network) + computing)


def training_seconds(load: Load, network: Network, decision: Decision) -> FloatArray:
    """Seconds of the local steps [..., clients]; 0 for a client that an access has left out."""
    clocks = network.cpu_hz if decision.cpu_hz is None else decision.cpu_hz
    trains = (load.cycles > 0) & (clocks > 0)
    return np.divide(load.cycles, clocks, out=np.zeros(trains.shape), where=trains)


def sending_seconds(
    service: Service, load: Load, network: Network
) -> tuple[FloatArray, FloatArray]:
    """Seconds in which clients send their pilots, and their updates, [..., clients] each."""
    pilots = load.pilot_symbols / network.bandwidth_hz[network.cell_of]
    sending = service.airtime_seconds
    if sending is None:
        training = training_seconds(load, network, service.decision)
        sending = np.maximum(service.seconds - load.begin_seconds(network) - training, 0.0)
    return pilots, sending


def with_waiting(service: Service, load: Load, network: Network) -> Service:
    """The service with the energy of devices while they wait for the end of the edge round.

    A device with ``idle_watts`` spends them while it neither trains nor sends, until the last
    client of its cell ends; also while it receives.

    Args:
        service: the edge rounds.
        load: what each client does.
        network: the clients.
    """
    watts = None if network.devices is None else network.devices.by_client("idle_watts")
    if watts is None:
        return service
    joins, seconds = takes_part(service, load, network), service.seconds
    last = network.over_cells(np.maximum, np.where(joins, seconds, 0.0))[..., network.cell_of]
    training = training_seconds(load, network, service.decision)
    pilots, sending = sending_seconds(service, load, network)
    waits = np.where(joins, np.maximum(last - pilots - training - sending, 0.0), 0.0)
    return replace(service, joules=service.joules + np.nan_to_num(watts.whole()) * waits)


def delivered(
    access: Access,
    load: Load,
    draws: ChannelDraw,
    failures: Failures | None,
    edge_rounds: int,
    stream: Stream,
    cutoff: float = np.inf,
) -> Service:
    """Serve the edge rounds of a global round, whose uploads may fail.

    Failures of clients, edge rounds and repeats are independent, given the channels. The server
    waits for a lost update as long as for one that arrives. In a band of its own, a repeat takes
    only the client's own time. Otherwise, e.g. in turns, all clients of the cell are served as if
    it had so much more to send.

    Args:
        access: who gets which part of the air.
        load: what each client does in an edge round, [..., senders].
        draws: channels of the clients, in one block or one per edge round.
        failures: which uploads fail; None for none.
        edge_rounds: number of edge rounds.
        stream: randomness of the failures.
        cutoff: seconds from the start of an edge round to its end at the latest: clients repeat
            failed uploads until then.

    Returns:
        Service of the blocks; with failures, of each edge round: [edge_rounds, senders].
    """
    if failures is None:
        return access.serve(load, draws)
    estimated = _lower(draws, failures.margin)
    service = access.serve(load, estimated)
    # The probabilities are those of one upload at its power in its band, and in its subcarriers.
    loaded = access.sent(estimated)
    sent = draws if loaded is estimated else _lower(loaded, 1 / failures.margin)
    chance = failures.probability(_own_snr(service, sent), draws)
    shape = (edge_rounds, len(draws.network.numbers))
    uniform = np.concatenate(
        [stream.uniforms(edge, draws.network.numbers, 1).T for edge in range(edge_rounds)]
    )
    chance = np.broadcast_to(chance, shape)
    sends = np.broadcast_to(load.bits > 0, shape) & np.broadcast_to(service.arrived, shape)
    if not failures.repeats:
        return replace(
            service,
            arrived=np.broadcast_to(service.arrived, shape) & ~(sends & (uniform < chance)),
        )
    times = np.where(sends, _until_success(chance, uniform), 1.0)
    if np.isfinite(cutoff):
        times = np.minimum(times, _until(cutoff, load, draws, service))
    return _repeated(access, load, estimated, service, times)


@dataclass(frozen=True, eq=False)
class WithMargin(Access):
    """Another access, whose clients send at the rates for channels that are lower by a margin.

    Decisions before a round need these rates, but not which uploads will fail.

    Args:
        access: the other access.
        margin: received SNR over the SNR for which clients choose their rates.
    """

    access: Access
    margin: float

    def __post_init__(self) -> None:
        for name in ("coupled", "costly"):
            object.__setattr__(self, name, getattr(self.access, name))

    @property
    def ranks_alone(self) -> bool:
        """See :class:`Access`."""
        return self.access.ranks_alone

    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`Access`."""
        return self.access.serve(load, _lower(draw, self.margin))

    def seconds(self, load: Load, draw: ChannelDraw) -> FloatArray:
        """See :class:`Access`."""
        return self.access.seconds(load, _lower(draw, self.margin))

    def soonest(self, load: Load, draw: ChannelDraw, counts: IntArray) -> BoolArray:
        """See :class:`Access`."""
        return self.access.soonest(load, _lower(draw, self.margin), counts)


def before_failures(access: Access, failures: Failures | None) -> Access:
    """The access for decisions before a round, which count no upload as failing.

    Args:
        access: the access of the round.
        failures: which uploads fail, and the margin of their rates; None for none.
    """
    if failures is None or failures.margin == 1:
        return access
    return WithMargin(access, failures.margin)


def _lower(draws: ChannelDraw, margin: float) -> ChannelDraw:
    """Channels of powers that are lower by ``margin``."""
    return replace(draws, h=draws.h / np.sqrt(margin))


def _own_snr(service: Service, draws: ChannelDraw) -> FloatArray:
    """Received SNR [blocks, senders] of each client at its power in its part of the band."""
    network, decision = draws.network, service.decision
    powers = network.transmit_power_w if decision.powers_w is None else decision.powers_w
    bands = decision.bands_hz
    heard = draws if bands is None else draws.in_bands()
    if bands is None:
        bands = network.bandwidth_hz[network.cell_of]
    received = heard.snr_hz * (powers / network.transmit_power_w)
    # A client without a band sends nothing.
    received, bands = np.broadcast_arrays(received, bands)
    snr = np.divide(received, bands, out=np.zeros(bands.shape), where=bands > 0)
    return snr if draws.spectrum is None else effective_snr(snr[..., None] * draws.spectrum)


def _until_success(chance: FloatArray, uniform: FloatArray) -> FloatArray:
    """Number of transmissions up to the first that does not fail; inf if all fail.

    It is geometric: P(more than n) = chance^n.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        more = np.floor(np.log1p(-uniform) / np.log(chance))
    return np.where(chance >= 1, np.inf, 1 + np.where(chance > 0, more, 0.0))


def _until(cutoff: float, load: Load, draws: ChannelDraw, service: Service) -> FloatArray:
    """Number of transmissions that a client starts before the cut-off, and one more."""
    begin = begin_seconds(service, load, draws.network)
    with np.errstate(divide="ignore", invalid="ignore"):
        many = np.ceil((cutoff - begin) / (service.seconds - begin))
    return np.where(service.seconds > begin, np.maximum(many, 0.0) + 1, 1.0)


def _repeated(
    access: Access, load: Load, estimated: ChannelDraw, service: Service, times: FloatArray
) -> Service:
    """The service in which each client sends ``times`` [edge rounds, senders] times."""
    if service.decision.bands_hz is None:
        finite = np.where(np.isfinite(times), times, 0.0)
        again = access.serve(replace(load, vectors=load.vectors * finite), estimated)
        never: BoolArray = np.isinf(times)
        seconds = np.where(never, np.inf, again.seconds)
        arrived = np.asarray(~never & again.arrived)
        return replace(again, seconds=seconds, arrived=arrived, transmissions=times)
    network = estimated.network
    # A client that an access has left out has no clock, no energy and no update.
    training = training_seconds(load, network, service.decision)
    ready, computing = (
        load.begin_seconds(network) + training,
        _compute_joules(service, load, network),
    )
    with np.errstate(invalid="ignore"):
        seconds = ready + times * (service.seconds - ready)
        joules = computing + times * (service.joules - computing)
        airtime = None if service.airtime_seconds is None else times * service.airtime_seconds
    arrived = np.asarray(np.isfinite(seconds) & service.arrived)
    if service.transmissions is not None:
        times = times * service.transmissions
    return replace(
        service,
        seconds=seconds,
        joules=joules,
        arrived=arrived,
        transmissions=times,
        airtime_seconds=airtime,
    )
