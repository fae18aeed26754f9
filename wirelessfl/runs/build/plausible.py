"""Notes on values that are allowed, but probably in the wrong unit, or cost much unawares.

Each rule is a function with its text; the thresholds are those of ``channels.plausible``. A rule
names values that no published setting of the experiments reaches; it never refuses a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import isfunction
from types import CodeType

import numpy as np

from channels import Network
from channels.decibels import dbm_to_watts
from channels.plausible import (
    MOST_MBPS,
    MOST_ROUND_JOULES,
    MOST_ROUND_SECONDS,
    MOST_STEP_SECONDS,
    network_notes,
)
from wirelessfl.air.client_costs import ClientCosts
from wirelessfl.air.links import costly
from wirelessfl.air.plan import Plan
from wirelessfl.base.guard import of_project
from wirelessfl.config import Config
from wirelessfl.config.choices import CHOSEN
from wirelessfl.engine.selection import Selection
from wirelessfl.training.workers.processes import cores

DAY = 86400.0
LEAST_MBPS = 1e-3
"""Below it, links of servers are probably in another unit."""
MISNAMED = 0.85
"""Least similarity (difflib's ratio) of names that are probably meant to be equal."""


@dataclass(frozen=True, eq=False)
class Examined:
    """What the rules look at.

    Args:
        config: the settings.
        network: the network of the run.
        first: plan of the first round; None if the run has no rounds of one model.
    """

    config: Config
    network: Network
    first: Plan | None = None

    @property
    def radio(self) -> bool:
        """Whether uploads cross the network's radio channel."""
        return self.config.frame.radio and self.config.uplink.radio

    @property
    def computes(self) -> bool:
        """Whether CPU speeds have an effect."""
        return self.config.frame.radio and self.config.network.step_seconds is None


def round_notes(config: Config, network: Network, first: Plan) -> list[str]:
    """The notes on a run in rounds of one model, but for those on its model and data.

    Args:
        config: the settings.
        network: the network of the run.
        first: plan of the first round.
    """
    notes = [*_biased(config.select), *_empty(config.training.cutoff_seconds, first)]
    return [*notes, *implausible(config, network, first)]


def _biased(select: Selection | None) -> Iterator[str]:
    """Whether the selection changes what the mean over the participants estimates."""
    if select is not None and not select.unbiased:
        yield (
            f'select "{select.title}" is biased: clients take part unequally often, so the mean '
            "over the participants is not an unbiased estimate of the mean over all clients."
        )


def _empty(cutoff: float | None, first: Plan) -> Iterator[str]:
    """Whether the cut-off ends the first round before any update arrives."""
    arrivals = first.arrivals
    if cutoff is not None and arrivals is not None and not arrivals.any():
        soonest = float(first.price.served.whole.seconds.min())
        yield (
            f"cutoff_seconds={cutoff:g}: no update arrives in round 1 (the first takes "
            f"{soonest:.4g} s), so the model does not change: raise cutoff_seconds."
        )


def implausible(
    config: Config, network: Network, first: Plan | None = None, *, settings: bool = True
) -> list[str]:
    """One line for each value that is probably in the wrong unit.

    Args:
        config: the settings.
        network: the network of the run.
        first: plan of the first round; None if the run has no rounds of one model.
        settings: whether to apply the rules on settings alone; False if they have been, with
            another network.
    """
    case = Examined(config, network, first)
    return [note for rule in (RULES if settings else (_network,)) for note in rule(case)]


def _uncompressed(case: Examined) -> Iterator[str]:
    """Whether some vectors of an upload are sent as they are."""
    compression, others = case.config.uplink_compression, case.config.rule.payloads[1:]
    if compression is not None and others:
        names = " and ".join(payload.name for payload in others)
        yield (
            f'uplink_compression "{compression.title}" compresses the change of the model; '
            f"algorithm {case.config.frame.title} sends {names} with 32 bits per element."
        )


def _network(case: Examined) -> Iterator[str]:
    yield from network_notes(case.network, radio=case.radio, computes=case.computes)
    power = case.config.network.transmit_power_dbm
    if case.radio and power is not None and 0 < power < 1:
        yield (
            f"transmit_power_dbm is {power:g}, {dbm_to_watts(power) * 1e3:.2g} mW: for {power:g} "
            "W, give transmit_power_w."
        )


def _step(case: Examined) -> Iterator[str]:
    seconds = case.config.network.step_seconds
    if seconds is not None and np.max(seconds) > MOST_STEP_SECONDS:
        most = float(np.max(seconds))
        yield (
            f"step_seconds is {most:g}, the seconds of a single local step: for {most:g} "
            f"milliseconds, give {most / 1e3:g}."
        )


def _links(case: Examined) -> Iterator[str]:
    network = case.config.network
    rates = {
        "downlink_mbps": network.downlink_mbps,
        "backhaul_mbps": network.backhaul_mbps,
        "rate_mbps": case.config.tables["uplink"].get("rate_mbps"),
    }
    for name, rate in rates.items():
        if rate is not None and rate >= MOST_MBPS:
            yield f"{name} is {rate:g}, {rate / 1e6:g} Tbit/s: give Mbit/s, not bit/s."
        if rate is not None and rate < LEAST_MBPS and name != "rate_mbps":
            yield f"{name} is {rate:g}, {rate * 1e6:g} bit/s: give Mbit/s."


def _threads(case: Examined) -> Iterator[str]:
    threads, there = case.config.run.threads, cores()
    if threads is not None and threads > there:
        yield (
            f"threads is {threads}, but this machine has {there} cores: more threads than cores "
            "slow training down."
        )


def _round(case: Examined) -> Iterator[str]:
    if case.first is None:
        return
    seconds = float(case.first.price.seconds.max())
    if seconds <= MOST_ROUND_SECONDS:
        return
    reason = "" if case.first.price.served.access.costly else _spent(ClientCosts.of(case.first))
    yield f"a round takes {seconds:.2g} s, {seconds / DAY:.3g} days{reason}."


def _spent(costs: ClientCosts) -> str:
    """What takes the most time of the client for which the round waits."""
    place = int(costs.stragglers.argmax())
    parts = {
        "downloads: see downlink_mbps": costs.download,
        "computes: see cpu_hz and cycles_per_step": costs.compute,
        "waits and sends: see bandwidth_hz and the SNR": costs.wait + costs.send,
    }
    spent = {name: float(costs.over_rounds(values)[place]) for name, values in parts.items()}
    most = max(spent, key=lambda name: spent[name])
    share = 100 * spent[most] / costs.seconds
    return f", for {share:.0f} % of which client {costs.clients[place]} {most}"


def _joules(case: Examined) -> Iterator[str]:
    if case.first is None or case.first.price.served.access.costly or not case.radio:
        return  # beamformers take time to optimise
    most = float(np.max(case.first.price.client_joules, initial=0))
    if most > MOST_ROUND_JOULES:
        yield (
            f"a client spends {most:.2g} J in a round, more than a server of 1 kW in "
            f"{MOST_ROUND_JOULES / 3.6e6:.2g} hours: see cpu_hz, cycles_per_step, "
            "switched_capacitance and the transmit power."
        )


def _energy(case: Examined) -> Iterator[str]:
    price = None if case.first is None else case.first.price
    equal = None if price is None else price.equal
    if price is None or equal is None:
        return
    rule = costly(
        {
            "joules": price.joules,
            "equal_joules": equal.joules,
            "round_seconds": price.seconds.max(),
            "equal_seconds": equal.seconds.max(),
        }
    )
    if rule is not None:
        yield f"with the bands of least time, the first round takes {rule}."


def _misnamed(case: Examined) -> Iterator[str]:
    """Methods of users' classes that nothing calls, with almost the name of one that they lack.

    A method that another one of theirs calls is a helper.
    """
    for kind in CHOSEN:
        cls = type(getattr(case.config, kind, None))
        if of_project(cls):
            continue
        users = [base for base in cls.__mro__ if not of_project(base) and base is not object]
        if len(users) == len(cls.__mro__) - 1:
            continue
        theirs = {name: value for base in users for name, value in vars(base).items()}
        inherited = {name for base in cls.__mro__ if base not in users for name in vars(base)}
        lacked = {name for name in inherited if name[0] != "_"} - theirs.keys()
        functions = [value.__code__ for value in theirs.values() if isfunction(value)]
        helpers = {name for one in functions for code in codes_of(one) for name in code.co_names}
        for name in sorted(theirs.keys() - inherited - helpers):
            near = get_close_matches(name, lacked, 1, MISNAMED)
            if name[0] != "_" and isfunction(getattr(cls, name)) and near:
                yield (
                    f"{kind} {cls.__name__} has a method {name}, which wirelessfl does not call, "
                    f"and no {near[0]} of its own: rename it if {near[0]} is meant."
                )


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


RULES: tuple[Callable[[Examined], Iterator[str]], ...] = (
    _misnamed, _uncompressed, _network, _step, _links, _threads, _round, _joules, _energy,
)  # fmt: skip
