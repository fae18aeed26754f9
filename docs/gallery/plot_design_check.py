"""
A design and its check
======================

How should training be set up to reach a target soonest, and is the prediction true? From short
pilots, a design chooses local steps, edge rounds and access, and predicts the seconds with an
interval. Three runs of it over this network, with seeds of their own, end within the interval.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import channels as ch
import wirelessfl
from wirelessfl.results import line_look

stream, target = ch.Stream(seed=1), 0.85
network = ch.placed_network(
    ch.Hexagonal(inter_site_distance_m=500),
    ch.Umi(),
    cells=2,
    clients=8,
    stream=stream,
    cpu_hz=stream.child("cpu").generator().uniform(1e9, 4e9, 8),
    bandwidth_hz=1e6,
    antennas=4,
    cycles_per_step=5e6,
)
settings = {"dataset": "digits", "hidden": (16,), "lr": 0.1, "rounds": 100, "uplink": "ofdma"}
settings |= {"target": target, "stop_at_target": True, "validation_fraction": 0.1}
config = wirelessfl.Config.from_flags("hfedavg", **settings)
choices = {"local_steps": [2, 5, 10, 20], "edge_rounds": [1, 2, 5], "pilots": 5}
plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained")
with TemporaryDirectory() as folder:
    root = Path(folder, "pilots")
    design = wirelessfl.design(config, network=network, pilot_steps=500, root=root, **choices).value
    for place, (name, one) in enumerate(
        {"as configured": config, "designed": design.config}.items()
    ):
        for seed in (1, 2, 3):
            out = Path(folder, f"{place}-{seed}")
            again = one.changed(seed=seed, out=out)
            rows = wirelessfl.run(again, network=network).rows
            seconds = [row["sim_seconds"] for row in rows]
            scores = [100 * row["validation_accuracy"] for row in rows]
            look = line_look(place) | {"marker": "", "label": name if seed == 1 else None}
            axes.plot(seconds, scores, **look)
            axes.plot(seconds[-1], scores[-1], "o", color=look["color"])
predicted = design.predicted.seconds
axes.axvspan(predicted.low, predicted.high, color="0.85", label="predicted (90 %)")
axes.axhline(100 * target, color="0.5", linewidth=0.8, linestyle=":")
axes.set(xlabel="simulated time (s)", ylabel="validation accuracy (%)", ylim=(20, None))
axes.legend(frameon=False)
plt.show()
