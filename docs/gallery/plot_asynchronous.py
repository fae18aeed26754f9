"""
Asynchronous cells against rounds, on one clock
===============================================

What if the cloud does not wait for the slowest of four cells? With rounds, three cells wait for one
whose CPUs are ten times slower. With a buffer of two, the cloud merges any two cells that are done,
which is sooner. If cells have different labels, each merge pulls the model to those of two cells.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import channels as ch
import wirelessfl
from wirelessfl.results import draw_curves

cell_of = np.repeat(np.arange(4), 4)
cpu_hz = np.where(cell_of == 0, 0.2e9, 2e9 + 0.2e9 * cell_of)
network = ch.Network.from_snr(cell_of, cpu_hz=cpu_hz, snr_db=20.0, bandwidth_hz=20e6, antennas=4)
common = {"dataset": "digits", "hidden": (32,), "lr": 0.05, "local_steps": 5, "edge_rounds": 2}
splits = {
    "similar cells": {"split": "dirichlet", "alpha": 0.5},
    "cells with different labels": {"split": "noniid"},
}
schedules = {
    "rounds": {"rounds": 1000},
    "buffer of 2 cells": {"schedule": "buffered", "buffer": 2, "rounds": 1000},
}
plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, panels = plt.subplots(2, figsize=(3.6, 4), sharex=True, layout="constrained")
for panel, (title, split) in zip(panels, splits.items(), strict=True):
    runs = {}
    for name, schedule in schedules.items():
        with TemporaryDirectory() as folder:
            settings = common | split | schedule | {"max_seconds": 0.6, "out": f"{folder}/run"}
            config = wirelessfl.Config.from_flags("hfedavg", **settings)
            runs[name] = [wirelessfl.run(config, network=network).rows]
    draw_curves(panel, runs, "seconds", floor=0.2)
    panel.set_title(title, fontsize=8)
    panel.grid(color="0.9")
panels[0].set_xlabel("")
plt.show()
