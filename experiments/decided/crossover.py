"""Where AirComp is faster than OMA: seconds of a global round over SNR and clients per cell.

``python -m experiments.decided crossover --make`` prices rounds of HIST in the setting of its
Figure 7 and writes ``crossover.json``, from which table and figure follow.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import wirelessfl
from channels.arrays import FloatArray
from experiments import records
from experiments.decided.uplinks import AIR, BEST, OMA, SLOTS
from experiments.priced import over
from wirelessfl.base.figures.curves import new_figure, style
from wirelessfl.config import Config
from wirelessfl.results.costs import markdown
from wirelessfl.results.panels import legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FILE = Path(__file__).with_name("crossover.json")
"""Seconds of all places, in the repository."""
SNRS = tuple(float(snr) for snr in range(-20, 21, 5))
CLIENTS = (5, 10, 15, 20, 30, 45, 60)
"""Clients per cell."""
SEEDS, ROUNDS = (1, 2), 5
CELLS = 4
SETTING: Mapping[str, Any] = {
    "model": "fcnn",
    "cells": CELLS,
    "local_steps": 40,
    "edge_rounds": 5,
    "batch_size": 50,
    "split": "noniid",
    "dataset": "fashion-mnist",
    "cpu_hz": (2e9, 4e9),
    "lr": 0.01,
}
"""The setting of HIST's Figure 7b."""
ONE_BIT = " with one bit per number"
BITS, BANDWIDTH_HZ = 32, 9e6
COMPARED = (AIR, *BEST, SLOTS, *(name + ONE_BIT for name in BEST))

MAPS: Mapping[str, Sequence[str]] = {
    "best OMA": BEST,
    "TDMA, equal slots (paper)": (SLOTS,),
    "best OMA, one bit per number": tuple(name + ONE_BIT for name in BEST),
}
"""The uplinks of which the fastest is compared with AirComp, by title of a map."""


class Place(NamedTuple):
    """Mean seconds of a global round.

    Args:
        snr_db: SNR of all clients.
        clients: clients per cell.
        seconds: by uplink.
    """

    snr_db: float
    clients: int
    seconds: dict[str, float]

    def ratio(self, uplinks: Sequence[str]) -> float:
        """Seconds over the fastest of these uplinks, relative to AirComp."""
        return min(self.seconds[name] for name in uplinks) / self.seconds[AIR]


def config(clients: int, snr_db: float, seed: int, uplink: str) -> Config:
    """A run of HIST with uniform masks in the setting of Figure 7b.

    Sending one bit in place of 32 takes as long as sending 32 in 32 times the band at the same SNR.
    """
    flags = {**SETTING, "clients": CELLS * clients, "snr_db": snr_db, "seed": seed}
    if uplink == AIR:
        flags["uplink"] = "aircomp"
    run = Config.from_flags("hist", **flags)
    if uplink == AIR:
        return run
    name, short = uplink.removesuffix(ONE_BIT), uplink.endswith(ONE_BIT)
    band = {"bandwidth_hz": BANDWIDTH_HZ * (BITS if short else 1)}
    return over(run, uplink=OMA[name], network=band)


def seconds(
    clients: int, snr_db: float, uplink: str, seeds: Sequence[int] = SEEDS, rounds: int = ROUNDS
) -> float:
    """Mean seconds of a global round over rounds and networks."""
    return statistics.mean(
        float(
            wirelessfl.price(
                config(clients, snr_db, s, uplink), rounds, joules=False
            ).seconds.mean()
        )
        for s in seeds
    )


def measure(
    snrs: Sequence[float] = SNRS,
    clients: Sequence[int] = CLIENTS,
    seeds: Sequence[int] = SEEDS,
    rounds: int = ROUNDS,
    show: Callable[[str], None] = lambda text: None,
) -> list[Place]:
    """The seconds of all places; those of AirComp do not depend on the SNR."""
    places = []
    for number in clients:
        air = seconds(number, snrs[0], AIR, seeds, rounds)
        for snr in snrs:
            others = {
                name: seconds(number, snr, name, seeds, rounds) for name in COMPARED if name != AIR
            }
            places.append(Place(snr, number, {AIR: air, **others}))
            show(f"{number} clients per cell, {snr:g} dB")
    return places


def load(file: Path = FILE) -> list[Place]:
    """The places of a file; none if there is no file."""
    return records.load(Place, file)


def table(places: Sequence[Place]) -> str:
    """Seconds over the best OMA relative to AirComp: one row per number of clients."""
    snrs = sorted({place.snr_db for place in places})[::2]
    head = ["OMA / AirComp", "clients per cell", "s per round, AirComp"]
    head += [f"{snr:g} dB" for snr in snrs]
    rows = []
    for title, uplinks in MAPS.items():
        for number, mine in _by_clients(places):
            cells = [f"{mine[snr].ratio(uplinks):.3g}" for snr in snrs]
            rows.append([title, str(number), f"{mine[snrs[0]].seconds[AIR]:.3g}", *cells])
    return markdown(head, rows)


def _by_clients(places: Sequence[Place]) -> Iterator[tuple[int, dict[float, Place]]]:
    for number in sorted({place.clients for place in places}):
        yield number, {place.snr_db: place for place in places if place.clients == number}


def ratios(places: Sequence[Place], uplinks: Sequence[str]) -> FloatArray:
    """Ratios [clients, SNRs] of OMA to AirComp."""
    return np.array(
        [[mine[snr].ratio(uplinks) for snr in sorted(mine)] for _, mine in _by_clients(places)]
    )


def draw(places: Sequence[Place]) -> Figure:
    """Maps relative to AirComp: the best OMA, equal slots as in the paper, and one bit a number."""
    figure, axes = new_figure(3, 2.6)
    maps = {title: ratios(places, uplinks) for title, uplinks in MAPS.items()}
    lowest = min(1.0, *(float(values.min()) for values in maps.values()))
    highest = max(float(values.max()) for values in maps.values())
    for panel, (title, quotients) in zip(axes, maps.items(), strict=True):
        shown = _map(panel, places, quotients, lowest, highest)
        panel.set_title(title)
    axes[0].set_ylabel("clients per cell")
    bar = figure.colorbar(shown, ax=list(axes), pad=0.01)
    bar.set_label("s per round, OMA / AirComp", fontsize=style().small)
    bar.ax.tick_params(labelsize=style().small)
    legend(
        figure,
        axes,
        f"HIST, {CELLS} cells",
        "FCNN",
        f"mean of {ROUNDS} rounds of {len(SEEDS)} networks",
        "red line: equally fast",
    )
    return figure


def _map(
    panel: Axes, places: Sequence[Place], ratios: FloatArray, lowest: float, highest: float
) -> Any:
    """Draw a map with the ratio in each field, and the line where both are equally fast."""
    from matplotlib.colors import LogNorm

    snrs = sorted({place.snr_db for place in places})
    numbers = [number for number, _ in _by_clients(places)]
    x, y = np.arange(len(snrs)), np.arange(len(numbers))
    panel.grid(visible=False)
    shown = panel.pcolormesh(x, y, ratios, norm=LogNorm(lowest, highest), cmap="cividis")
    for (row, column), value in np.ndenumerate(ratios):
        dark = np.log(value / lowest) < 0.5 * np.log(highest / lowest)
        colour = "white" if dark else "black"
        text = f"{value / 1000:.0f}k" if value >= 1000 else f"{value:.{int(value < 10)}f}"
        panel.text(
            column, row, text, ha="center", va="center", color=colour, fontsize=style().small * 0.8
        )
    if ratios.min() < 1 < ratios.max():
        panel.contour(x, y, ratios, levels=[1.0], colors="red")
    panel.set_xticks(x, [f"{snr:g}" for snr in snrs])
    panel.set_yticks(y, [str(number) for number in numbers])
    panel.set_xlabel("SNR (dB)")
    return shown
