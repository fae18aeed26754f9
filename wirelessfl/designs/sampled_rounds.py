"""What global rounds cost, for other numbers of local steps and edge rounds: sample averages.

Participants and channels of the sample are drawn once, by the planner of the run. The loads of all
numbers of local steps and edge rounds are served together where a round's submodels and channels do
not depend on them; otherwise each round is planned for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from channels import Access, ChannelDraw, Load
from channels.arrays import FloatArray, IntArray
from solvers import DeadlineMissedError, OverTheAir
from wirelessfl.air.delivery import with_waiting
from wirelessfl.air.participants import Participants
from wirelessfl.air.plan import Plan
from wirelessfl.air.round_price import cell_seconds, mean_joules
from wirelessfl.air.uplinks import Uplink
from wirelessfl.air.uplinks.checked import serving
from wirelessfl.air.uplinks.tdma import Tdma
from wirelessfl.algorithms.assigners import Assigner
from wirelessfl.engine.rounds.contexts import RoundDurations, round_context
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.models.submodels import Submodels, largest_part

MISSED = 1e9
"""Deadline, in seconds, that takes the place of one that a cell misses, to serve the others."""


class Costs(NamedTuple):
    """Costs of a global round, by numbers of local steps and edge rounds.

    Args:
        seconds: [draws, H, E], duration; inf where a deadline is missed.
        joules: [draws, H, E], mean over all clients; NaN if they are not computed.
        largest: [H, E], m: the largest submodel relative to equal ones, or the mean of 1/width
            where each client has a width.
    """

    seconds: FloatArray
    joules: FloatArray
    largest: FloatArray

    @property
    def means(self) -> tuple[FloatArray, FloatArray]:
        """Sample averages of seconds and joules, [H, E]."""
        return self.seconds.mean(0), self.joules.mean(0)


class SameParticipants(NamedTuple):
    """Rounds of the sample with the same participants, whose channels are the blocks of a draw."""

    who: Participants
    draws: ChannelDraw


@dataclass(frozen=True, eq=False)
class SampledRounds:
    """A sample of global rounds of a configuration.

    Args:
        planner: plans the rounds; its stream draws the sample.
        draws: number of rounds in the sample.
        groups: participants and channels of the sample; None to draw them.
        powered: accesses over the air whose beamformers and powers are known, for these channels.
    """

    planner: Planner
    draws: int
    groups: Sequence[SameParticipants] | None = None
    powered: dict[Any, Access] = field(default_factory=dict)

    def with_assigner(self, assigner: Assigner) -> SampledRounds:
        """The same rounds with submodels of other sizes."""
        planner = replace(self.planner, chosen=assigner)
        return SampledRounds(planner, self.draws, self.rounds, self.powered)

    @property
    def batched(self) -> bool:
        """Whether channels and submodels do not depend on numbers of steps and edge rounds."""
        return self._batched(_plain(self.planner))

    @property
    def submodels(self) -> Submodels:
        """The submodels of the first round."""
        return self._first.submodels

    @property
    def largest(self) -> float:
        """m, if sizes are the same in all rounds: see ``Costs``."""
        narrow = self.planner.assigner.design_sizes.reciprocal_width(self.planner.network.clients)
        return max(largest_part(self._first.submodels), narrow)

    def first(self, draws: int) -> SampledRounds:
        """The first rounds of the sample."""
        return SampledRounds(self.planner, min(draws, self.draws))

    def wider(self, draws: int, uplink: Uplink) -> SampledRounds:
        """A sample of more rounds; the sample itself if the uplink needs beamformers in each."""
        costly = self._over(uplink).pricing.access.costly
        return self if costly else SampledRounds(self.planner, draws)

    def planned(self, uplink: Uplink, local_steps: int, edge_rounds: int, draw: int) -> Plan:
        """The plan of one of the rounds."""
        return _planned(self._over(uplink), local_steps, edge_rounds, draw)

    def _over(self, uplink: Uplink) -> Planner:
        return replace(self.planner, links=replace(self.planner.links, uplink=uplink))

    def of(
        self,
        uplink: Uplink,
        local_steps: Sequence[int],
        edge_rounds: Sequence[int],
        *,
        deadline: FloatArray | None = None,
        joules: bool = True,
    ) -> Costs:
        """Costs of the sample's rounds.

        Args:
            uplink: the uplink.
            local_steps: H, numbers of local steps.
            edge_rounds: E, numbers of edge rounds.
            deadline: [H, E], deadline of a global round, in seconds, for an uplink that takes one;
                None for the uplink's own.
            joules: whether to compute the energy of an access for which it takes long.
        """
        planner = self._over(uplink)
        steps, edges = np.array(local_steps), np.array(edge_rounds)
        whole = joules or not planner.pricing.access.costly
        if self._batched(planner):
            return self._together(planner, steps, edges, deadline, whole)
        return self._one_by_one(planner, steps, edges, deadline, whole)

    def _batched(self, planner: Planner) -> bool:
        links, settings = planner.links, planner.settings
        plain = links.failures is None and settings.cutoff_seconds is None
        plain = plain and planner.participation.selection is None
        plain = plain and links.coherence == "round" and planner.assigner.fixed_shapes
        if not plain or links.uplink.silent(self._first.draws) is not None:
            return False
        # A sum over the air contains the elements that at least one client has, in each round.
        steady = links.uplink.gives == "each" and self._lengths is not None
        return self._first.client_submodels is None or steady

    @cached_property
    def _first(self) -> Plan:
        """The first round, with its own submodels; their sizes are those of all rounds."""
        return _planned(_plain(self.planner), 1, 1, 0)

    @cached_property
    def _lengths(self) -> FloatArray | None:
        """Length of each client's submodel, [clients]; None if rounds must be planned for it."""
        planner, sizes = self.planner, self.planner.assigner.design_sizes
        if sizes.of != "clients":
            return None
        clients = planner.network.clients
        who = Participants(np.arange(clients), np.ones(clients, dtype=np.bool_))
        stream = planner.run_stream or planner.stream
        durations = RoundDurations.of(planner.pricing, self.rounds[0].draws, who, 0)
        context = round_context(planner.model, stream, stream, durations)
        return sizes.lengths(context)

    @cached_property
    def rounds(self) -> Sequence[SameParticipants]:
        """Participants and channels of the sample; rounds with the same participants together."""
        if self.groups is not None:
            return self.groups
        planner = _plain(self.planner)
        whole = Submodels.whole(planner.model.spec, planner.network.cells)
        alike = planner.participation.per_round is None and not planner.network.hands_over
        plans = [planner.plan(n, submodels=whole) for n in range(1 if alike else self.draws)]
        if not alike:
            return [SameParticipants(Participants(p.clients, p.tracking), p.draws) for p in plans]
        who = Participants(plans[0].clients, plans[0].tracking)
        draws = planner.network.draws(planner.channel_stream, range(self.draws), who.clients)
        return [SameParticipants(who, draws)]

    def _together(
        self,
        planner: Planner,
        steps: IntArray,
        edges: IntArray,
        deadline: FloatArray | None,
        joules: bool,
    ) -> Costs:
        """All numbers of steps and edge rounds at once, in arrays [E or 1, H, draws, senders]."""
        settings = replace(planner.settings, local_steps=1, edge_rounds=1)
        pricing = replace(planner.pricing, settings=settings)
        nodes, lengths = self._first.submodels.lengths.astype(np.float64), self._lengths
        backhaul = pricing.backhaul_seconds(nodes)
        parts: list[tuple[FloatArray, FloatArray]] = []
        for number, (who, draws) in enumerate(self.rounds):
            if lengths is None:
                load = pricing.load(who, nodes[draws.network.cell_of])
            else:
                load = pricing.load(who, lengths[who.clients], lengths[who.clients])
            access = pricing.access
            with serving(pricing.title):
                if joules:
                    access = self._access(access, load, draws, number)
                loads = _loads(load, steps, edges, deadline)
                # Each round has one block, as its channels are those of all its edge rounds.
                seconds, spent = (x[..., None, :] for x in _served(access, loads, draws, joules))
            by_cell = cell_seconds(draws.network, seconds, edges[:, None, None, None], backhaul)
            mean = mean_joules(spent, edges[:, None, None], planner.network.clients)
            parts.append((by_cell.max(-1), mean))
        times, energy = (np.concatenate(part, -1).T for part in zip(*parts, strict=True))
        return Costs(times, energy, np.full(times.shape[1:], self.largest))

    def _one_by_one(
        self,
        planner: Planner,
        steps: IntArray,
        edges: IntArray,
        deadline: FloatArray | None,
        joules: bool,
    ) -> Costs:
        shape = (self.draws, len(steps), len(edges))
        seconds, spent = np.full(shape, np.inf), np.full(shape, np.nan)
        largest = np.ones(shape)
        narrow = planner.assigner.design_sizes.reciprocal_width(planner.network.clients)
        for place in np.ndindex(shape):
            number, h, e = place
            if deadline is not None:
                links, limit = planner.links, float(deadline[h, e])
                uplink = replace(links.uplink, round_deadline=limit)  # type: ignore[call-arg]
                planner = replace(planner, links=replace(links, uplink=uplink))
            plan = _planned(planner, int(steps[h]), int(edges[e]), number)
            seconds[place] = plan.price.seconds.max()
            largest[place] = max(largest_part(plan.submodels), narrow)
            if joules:
                spent[place] = self._joules(plan)
        return Costs(seconds, spent, largest.mean(0))

    def _joules(self, plan: Plan) -> float:
        """Joules of a round, mean over the clients."""
        served = plan.price.served
        if served.failures is not None:  # channels are estimated
            return plan.price.joules
        place = plan.round, served.draws.h.shape[0]
        with serving(served.title):
            access = self._access(served.access, served.load, served.draws, place)
        return replace(plan.price, served=replace(served, access=access)).joules

    def _access(self, access: Access, load: Load, draws: ChannelDraw, place: Any) -> Access:
        """The access; over the air with its beamformers and powers, which are found once."""
        if not isinstance(access, OverTheAir):
            return access
        key = access, place, load.vectors.tobytes(), draws.network.numbers.tobytes()
        if key not in self.powered:
            self.powered[key] = access.with_powers(load, draws)
        return self.powered[key]


def _plain(planner: Planner) -> Planner:
    """The planner with an uplink whose plans cost little to make."""
    return replace(planner, links=replace(planner.links, uplink=Tdma(), failures=None))


def _planned(planner: Planner, steps: int, edges: int, number: int) -> Plan:
    settings = replace(planner.settings, local_steps=steps, edge_rounds=edges)
    return replace(planner, settings=settings).plan(number)


def _loads(load: Load, steps: IntArray, edges: IntArray, deadline: FloatArray | None) -> Load:
    """Loads [E or 1, H, 1, senders] from that of one local step and one edge round."""
    rounds = edges[:, None, None, None]
    ends = load.deadline_seconds if deadline is None else deadline.T[:, :, None, None]
    changes: dict[str, FloatArray] = {"cycles": steps[:, None, None] * load.cycles}
    if load.pilot_symbols.any():  # once per channel block, which is the global round
        changes["pilot_symbols"] = load.pilot_symbols / rounds
    if load.after_seconds.any():
        changes["after_seconds"] = load.after_seconds / rounds
    if np.isfinite(ends).any():
        changes["deadline_seconds"] = ends / rounds
    return replace(load, **changes)


def _served(
    access: Access, load: Load, draws: ChannelDraw, joules: bool
) -> tuple[FloatArray, FloatArray]:
    """Seconds and joules [E or 1, H, draws, senders]; inf seconds where a deadline is missed."""
    shape = np.broadcast_shapes((1,) * 4, load.shape, draws.h.shape[:-1])
    if not joules:
        return np.broadcast_to(access.seconds(load, draws), shape), np.full(shape, np.nan)
    try:
        service = access.serve(load, draws)
    except DeadlineMissedError:
        seconds = np.broadcast_to(access.seconds(load, draws), shape)
        late = ~np.isfinite(seconds).all((-1, -2), keepdims=True)
        ends = np.where(late, MISSED, load.deadline_seconds)
        service = access.serve(replace(load, deadline_seconds=ends), draws)
        service = replace(service, seconds=np.where(late, np.inf, service.seconds))
    service = with_waiting(service, load, draws.network)
    return np.broadcast_to(service.seconds, shape), np.broadcast_to(service.joules, shape)
