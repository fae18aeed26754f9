"""Notes on values that are allowed, but probably in the wrong unit.

Each rule is a function with its threshold and its text. A rule names values that no published
setting of the experiments reaches; it never refuses a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from channels import Network
from channels.arrays import FloatArray
from channels.decibels import watts_to_dbm
from wirelessfl.config import Config
from wirelessfl.rounds.client_costs import ClientCosts
from wirelessfl.rounds.plan import Plan
from wirelessfl.selection import Selection
from wirelessfl.training.workers.processes import cores

LEAST_BANDWIDTH_HZ = 1e3
"""A quarter of the smallest subcarrier of cellular radio, 3.75 kHz (NB-IoT)."""
LEAST_CPU_HZ = 1e6
"""The clock of home computers of about 1980."""
MOST_POWER_W = 2.0
"""33 dBm, the most that handheld devices have had (GSM, power class 4)."""
MOST_SNR_DB = 100.0
"""Received SNR; receivers saturate long before, and a rate of 33 bit/s/Hz has no modulation."""
LEAST_DISTANCE_M = 5.0
"""Distance of the farthest client: smaller cells are rare, kilometres given as metres are not."""
MOST_MBPS = 1e6
"""1 Tbit/s on one link."""
MOST_ROUND_SECONDS = 1e5
"""A little more than a day."""
DAY = 86400.0


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


def implausible(config: Config, network: Network, first: Plan | None = None) -> list[str]:
    """One line for each value that is probably in the wrong unit.

    Args:
        config: the settings.
        network: the network of the run.
        first: plan of the first round; None if the run has no rounds of one model.
    """
    case = Examined(config, network, first)
    return [note for rule in RULES for note in rule(case)]


def _bandwidth(case: Examined) -> Iterator[str]:
    least = float(case.network.bandwidth_hz.min())
    if case.radio and least < LEAST_BANDWIDTH_HZ:
        yield (f"bandwidth_hz is {least:g} Hz: for {least:g} MHz, give {least * 1e6:.3g}.")


def _cpu(case: Examined) -> Iterator[str]:
    speeds = case.network.cpu_hz
    if case.computes and speeds.min() < LEAST_CPU_HZ:
        yield (
            f"cpu_hz is {_range(speeds)} Hz: for {float(speeds.min()):.3g} GHz, give "
            f"{float(speeds.min()) * 1e9:.3g}."
        )


def _power(case: Examined) -> Iterator[str]:
    given, most = case.config.network.transmit_power_dbm, float(case.network.transmit_power_w.max())
    if not case.radio:
        return
    if given is not None and 0 < given < 1:
        yield (
            f"transmit_power_dbm is {given:g}, {most * 1e3:.2g} mW: for {given:g} W, give "
            "transmit_power_w."
        )
    if most > MOST_POWER_W:
        yield (
            f"transmit_power_w is {most:.3g}, {float(watts_to_dbm(most)):.3g} dBm, more than "
            f"handheld devices transmit: for {most:.3g} dBm, give transmit_power_dbm."
        )


def _snr(case: Examined) -> Iterator[str]:
    snr = float(case.network.mean_snr_db.max())
    if case.radio and snr > MOST_SNR_DB:
        yield (
            f"the mean SNR at the edge server is up to {snr:.0f} dB, above {MOST_SNR_DB:.0f} dB: "
            "snr_db and path_gain_db together must give the SNR at the receiver."
        )


def _distance(case: Examined) -> Iterator[str]:
    where = case.network.placement
    if where is None or not case.radio:
        return
    farthest = float(where.distance_m.max())
    if farthest < LEAST_DISTANCE_M:
        yield (
            f"no client is more than {farthest:.2g} m from its edge server: distances are in "
            "metres, 1000 for a kilometre."
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


def _range(values: FloatArray) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


RULES: tuple[Callable[[Examined], Iterator[str]], ...] = (
    _bandwidth, _cpu, _power, _snr, _distance, _links, _threads, _round,
)  # fmt: skip
