"""The clients that take part in a round, and those that send tracking terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels import Network
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.errors import ConfigError


@dataclass(frozen=True)
class Participants:
    """The clients of one round, in the order of the network.

    Args:
        clients: [senders], their numbers.
        tracking: [senders], who sends what only trackers send.
    """

    clients: IntArray
    tracking: BoolArray

    def vectors(self, algorithm: Algorithm) -> FloatArray:
        """[senders], how many vectors each sends."""
        for_all = sum(payload.senders == "all" for payload in algorithm.payloads)
        return for_all + (len(algorithm.payloads) - for_all) * self.tracking.astype(np.float64)


def draw_participants(
    network: Network,
    per_round: int | None,
    tracking: int | None,
    stream: Stream,
    present: BoolArray | None = None,
) -> Participants:
    """S of n clients, drawn evenly without replacement, and S_tilde trackers among them.

    A cell takes part in proportion to its clients, and tracks in proportion to those taking part;
    what does not divide is rounded at random, afresh in each round, so that in the long run every
    client is asked equally often. In a round a cell may be without a tracker.

    Args:
        network: cells and clients.
        per_round: S, in all cells together; None: all clients.
        tracking: S_tilde, likewise; None: all S.
        stream: randomness of this round.
        present: [clients], clients present; of fewer than S all take part, and then a cell may
            be without a client. None: all clients.

    Raises:
        ConfigError: S may leave a cell without a client, and all clients are present.
    """
    # Places number the clients present, cell by cell; no array over all clients is made.
    present_clients = None if present is None else np.flatnonzero(present)
    sizes = network.cell_sizes
    if present_clients is not None:
        sizes = np.diff(np.searchsorted(present_clients, [*network.cell_starts, network.clients]))
    sampled = trackers = sizes
    if per_round is not None:
        small = int(sizes.argmin())
        if present is None and sizes[small] * per_round < network.clients:
            raise ConfigError(
                f"clients_per_round is {per_round}, and cell {small} of {len(sizes)} has only "
                f"{sizes[small]} of the {network.clients} clients: in some rounds none of it would "
                "take part. Sample more clients."
            )
        total = min(per_round, int(sizes.sum()))
        sampled = trackers = _shares(sizes, total, stream.child("participants of cells"))
    if tracking is not None:
        total = min(tracking, int(sampled.sum()))
        trackers = _shares(sampled, total, stream.child("trackers of cells"))
    places, tracks = [], []
    for cell, first in enumerate(np.cumsum(sizes) - sizes):
        dice = stream.child("participants", cell)
        places.append(first + _some(sizes[cell], sampled[cell], dice))
        tracks.append(np.zeros(sampled[cell], dtype=np.bool_))
        tracks[cell][_some(sampled[cell], trackers[cell], dice.child("trackers"))] = True
    clients = np.concatenate(places)
    return Participants(
        clients if present_clients is None else present_clients[clients], np.concatenate(tracks)
    )


def _some(size: int, count: int, stream: Stream) -> IntArray:
    """``count`` of 0, ..., size - 1, in order; any set is equally likely. Costs ``count``."""
    if count == size:
        return np.arange(size)
    # Unshuffled, so that the set is uniform, not its order.
    return np.sort(stream.generator().choice(size, count, replace=False, shuffle=False))


def _shares(sizes: IntArray, total: int, stream: Stream) -> IntArray:
    """``total`` shared out in proportion to ``sizes``, rounded so that the means are exact.

    Systematic sampling: one random offset for the running sums.
    """
    ends = np.cumsum(sizes) * total / sizes.sum()
    # Rounding must not lift a whole number over the next one.
    cuts = np.floor(np.round(ends, 9) + stream.generator().random())
    return np.asarray(np.diff(cuts, prepend=0), dtype=np.int64)


def check_participation(
    algorithm: Algorithm,
    clients: int,
    cells: int,
    per_round: int | None,
    tracking: int | None,
    *,
    known: bool = True,
) -> None:
    """Refuse numbers of participants that cannot be, or that the algorithm does not work with.

    Args:
        algorithm: that is run.
        clients: n, of the network.
        cells: of the network.
        per_round: S; None for all clients.
        tracking: S_tilde; None for all S.
        known: whether ``clients`` and ``cells`` are those of the run; otherwise only numbers that
            fit no network are refused.

    Raises:
        ConfigError: they are; the message names the settings.
    """
    sampled = clients if per_round is None else per_round
    trackers = sampled if tracking is None else tracking
    if known and not cells <= sampled <= clients:
        raise ConfigError(
            f"clients_per_round is {sampled}, with {clients} clients in {cells} cells: choose "
            f"{cells} to {clients}."
        )
    tracks = any(payload.senders == "tracking" for payload in algorithm.payloads)
    if tracking is not None and not tracks:
        raise ConfigError(
            f"tracking_clients is {tracking}, and algorithm {algorithm.name!r} tracks nothing: "
            "leave it out, or choose fadamgc, fa-nt, scaffold or scaffold-m, inside cells by "
            "--local."
        )
    if trackers > sampled and (known or per_round is not None):
        raise ConfigError(
            f"tracking_clients is {trackers}, and {sampled} clients take part in a round: choose 1 "
            f"to {sampled}."
        )
    if not known and (per_round is not None or tracking is not None):
        return
    try:
        algorithm.check(clients, sampled, trackers)
    except ValueError as error:
        raise ConfigError(f"algorithm {algorithm.name!r}: {error}") from error
