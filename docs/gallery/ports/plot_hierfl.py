"""
HierFL: local steps against edge rounds
=======================================

How often should edge servers average, if the cloud does after 60 local steps? The settings are
those of LuminLiu/HierFL (https://github.com/LuminLiu/HierFL; Liu et al., ICC 2020,
arXiv:1905.06641): 50 clients with two labels each, five edge servers, mini-batches of 20, step size
0.01. With an average every 15 steps, 85 % is reached first: after 60 steps the models have drifted,
and uploads every 6 steps take long.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import wirelessfl
from wirelessfl.results import draw_curves

# %%
# The repository trains LeNet on MNIST: ``dataset="mnist", model="lenet5"``. It counts no time. The
# clock has the ratios that the authors' LuminLiu/Hier_QSGD has by default: 2 for a local step, 33
# for a client and its edge server, 330 for an edge server and the cloud; here in milliseconds. The
# repository's step size decays by 0.5 % per epoch, here it is constant.

HIDDEN = 32
BITS = 32 * (64 * HIDDEN + HIDDEN + HIDDEN * 10 + 10)
settings = {"dataset": "digits", "hidden": (HIDDEN,), "cells": 5, "clients": 50, "split": "noniid"}
settings |= {"shards": 2, "batch_size": 20, "lr": 0.01, "weighting": "samples", "rounds": 30}
settings |= {"uplink": "fixed", "rate_mbps": 2 * BITS / 33e-3 / 1e6, "step_seconds": 2e-3}
settings |= {"backhaul_mbps": 2 * BITS / 330e-3 / 1e6, "max_seconds": 7}  # down and up

runs = {}
for local_steps, edge_rounds in ((60, 1), (15, 4), (6, 10)):
    with TemporaryDirectory() as folder:
        config = wirelessfl.Config.from_flags(
            "hfedavg",
            local_steps=local_steps,
            edge_rounds=edge_rounds,
            out=f"{folder}/run",
            **settings,
        )
        runs[f"{local_steps} steps x {edge_rounds}"] = [wirelessfl.run(config).rows]

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained")
draw_curves(axes, runs, "seconds")
axes.axhline(85, color="0.6", linewidth=0.8)
axes.grid(color="0.9")
plt.show()
