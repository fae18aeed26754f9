"""Contracts of a function that returns a network."""

from __future__ import annotations

from channels import Network
from channels.stored import load_network, network_arrays, save_network, why_not_stored
from wirelessfl.checking.contract import Contract, NotTestedError, broken, difference
from wirelessfl.checking.runs import BASIC, CREATED
from wirelessfl.checking.subject import Subject
from wirelessfl.config.own_network import own_network

SAME = "returns the same network for the same stream"
SEED = 7


def _made(subject: Subject) -> Network:
    """The network of a new call."""
    return own_network(subject.path, SEED, again=True)


def _created(subject: Subject) -> None:
    _made(subject)
    subject.config()


def _apart(subject: Subject, one: Network, two: Network) -> str | None:
    """Where two networks differ: in their values, or in the channels of a block."""
    found = None
    if not why_not_stored(one) and not why_not_stored(two):
        found = difference(network_arrays(one), network_arrays(two))
    if found is not None or one.clients != two.clients:
        return found or " in the number of clients"
    here, there = (network.draw(subject.stream, 3).h for network in (one, two))
    return None if difference(here, there) is None else " in the channels of a block"


def _twice(subject: Subject) -> None:
    found = _apart(subject, _made(subject), _made(subject))
    if found is not None:
        broken(
            f"two calls with equal streams differ{found}: draw from the stream, f(stream), and "
            "keep no state"
        )


def _stored(subject: Subject) -> None:
    network = _made(subject)
    reason = why_not_stored(network)
    if reason:
        raise NotTestedError(f"{reason}, so runs do not store it")
    file = subject.folder / "network.npz"
    save_network(network, file)
    found = _apart(subject, network, load_network(file))
    if found is not None:
        broken(
            f"the network that a run's folder keeps differs{found}: return a channels.Network, not "
            "an object of a class of your own"
        )


CONTRACTS = (
    Contract(CREATED.name, _created),
    Contract(SAME, _twice, needs=(CREATED.name,)),
    Contract("is stored and read back", _stored, needs=(SAME,)),
    *BASIC,
)
