"""How often runs of designs end within their predicted intervals.

``python -m benchmarks.intervals`` designs and trains runs over ten networks of unlike cells, radii,
antennas, fading, path losses and uplinks, with three seeds each, which are other networks. It takes
some minutes of one core, and prints a Markdown table.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import wirelessfl

TARGET = 0.8
COMMON: dict[str, Any] = {
    "dataset": "digits",
    "hidden": (16,),
    "lr": 0.1,
    "batch_size": 16,
    "bandwidth_hz": 1e6,
    "step_seconds": 2e-4,
    "downlink_mbps": 100.0,
    "antennas": 1,
    "threads": 1,
}
DESIGN: dict[str, Any] = {
    "local_steps": [2, 5, 10, 20],
    "edge_rounds": [1, 2, 4],
    "pilots": 6,
    "pilot_steps": 1500,
}
NETWORKS: Mapping[str, Mapping[str, Any]] = {
    "star, disc of 300 m, 1 antenna": {"clients": 10, "layout": "disc", "radius_m": 300.0},
    "star, disc of 1 km, 1 antenna": {"clients": 10, "layout": "disc", "radius_m": 1000.0},
    "star, ring of 500 m, TR 36.814, 1 antenna, Rician": {
        "clients": 10,
        "layout": "ring",
        "distance_m": 500.0,
        "path_loss": "tr36814",
        "fading": "rician",
    },
    "star, disc of 800 m, log-distance, 2 antennas, time slots": {
        "clients": 20,
        "layout": "disc",
        "radius_m": 800.0,
        "path_loss": "log-distance",
        "antennas": 2,
        "uplinks": ["tdma"],
    },
    "star, SNR of 10 dB, 4 antennas": {"clients": 20, "snr_db": 10.0, "antennas": 4},
    "2 cells, discs of 500 m, 1 antenna": {
        "cells": 2,
        "clients": 10,
        "layout": "disc",
        "radius_m": 500.0,
    },
    "2 cells, discs of 1.5 km, 1 antenna": {
        "cells": 2,
        "clients": 10,
        "layout": "disc",
        "radius_m": 1500.0,
    },
    "2 cells, SNR of 15 dB, 1 antenna, AirComp": {
        "cells": 2,
        "clients": 10,
        "snr_db": 15.0,
        "uplinks": ["aircomp"],
    },
    "4 hexagonal cells, 500 m, UMa, 2 antennas": {
        "cells": 4,
        "clients": 20,
        "layout": "hexagonal",
        "inter_site_distance_m": 500.0,
        "path_loss": "uma",
        "antennas": 2,
    },
    "4 hexagonal cells, 1 km, 4 antennas": {
        "cells": 4,
        "clients": 20,
        "layout": "hexagonal",
        "inter_site_distance_m": 1000.0,
        "antennas": 4,
    },
}


class Held(NamedTuple):
    """Whether one run is within the intervals of its design.

    Args:
        ratio: seconds of the run over the predicted ones; inf if the target is not reached.
        rounds: whether its rounds are within their interval.
        by_rounds: whether its seconds are, if all rounds take the mean.
        seconds, joules: whether they are within their intervals.
        named: whether a fade is named that dominates a mean.
    """

    ratio: float
    rounds: bool
    by_rounds: bool
    seconds: bool
    joules: bool
    named: bool


def held(title: str, seed: int, root: Path, **options: Any) -> Held:
    """Design and train one run.

    Args:
        title: the network, in ``NETWORKS``.
        seed: seed of the network and of the run.
        root: folder of pilots and runs.
        options: arguments of ``wirelessfl.design`` that replace those of ``DESIGN``.
    """
    flags = {**COMMON, "seed": seed, **NETWORKS[title]}
    cells = flags.get("cells", 1) > 1
    options = {**DESIGN, **options, "root": root / "pilots"}
    options |= {"uplinks": flags.pop("uplinks", ["tdma", "ofdma"])}
    if "aircomp" in options["uplinks"]:
        flags["uplink"] = "aircomp"
    if not cells:
        del options["edge_rounds"]
    config = wirelessfl.Config.from_flags("hfedavg" if cells else "fedavg", **flags)
    design = wirelessfl.design(config, target=TARGET, **options).value
    assert design is not None
    predicted = design.predicted
    config = design.config.with_run({"out": root / f"{title}, seed {seed}"})
    last = wirelessfl.run(config).rows[-1]
    ends = last["round"], last["sim_seconds"], last["joules"]
    if last["validation_accuracy"] < TARGET:
        ends = (np.inf,) * 3
    mean = predicted.seconds.value / predicted.rounds.value
    return Held(
        ends[1] / predicted.seconds.value,
        predicted.rounds.low <= ends[0] <= predicted.rounds.high,
        predicted.rounds.low * mean <= ends[1] <= predicted.rounds.high * mean,
        predicted.seconds.low <= ends[1] <= predicted.seconds.high,
        predicted.joules.low <= ends[2] <= predicted.joules.high,
        bool(predicted.dominant),
    )


def table(held: Mapping[str, Sequence[Held]]) -> str:
    """The runs of each network, and all of them, as Markdown."""
    heads = ["network", "realised over predicted s", "rounds", "s, if rounds took the mean"]
    heads += ["s", "J", "fade named"]
    rows = [heads, ["---"] * len(heads)]
    every = [one for some in held.values() for one in some]
    for title, some in [*held.items(), ("all", every)]:
        ratios = sorted(one.ratio for one in some)
        shown = f"{ratios[0]:.2g} to {ratios[-1]:.2g}"
        counts = (
            sum(getattr(one, name) for one in some)
            for name in ("rounds", "by_rounds", "seconds", "joules", "named")
        )
        rows.append([title, shown, *(f"{count} of {len(some)}" for count in counts)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _all(titles: Iterable[str], seeds: int, root: Path) -> Iterator[tuple[str, Held]]:
    for title in titles:
        for seed in range(1, seeds + 1):
            yield title, held(title, seed, root)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="seeds of each network")
    arguments = parser.parse_args()
    results: dict[str, list[Held]] = {title: [] for title in NETWORKS}
    with tempfile.TemporaryDirectory() as folder:
        for title, one in _all(NETWORKS, arguments.seeds, Path(folder)):
            results[title].append(one)
            print(f"{title}: {one}", flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
