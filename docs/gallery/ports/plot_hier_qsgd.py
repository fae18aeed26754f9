"""
Hier_QSGD: quantised uploads in cells
=====================================

What do quantised uploads save under edge servers and a cloud? LuminLiu/Hier_QSGD
(https://github.com/LuminLiu/Hier_QSGD; Liu et al., IEEE TWC 2022, arXiv:2103.14272) rounds the
changes of clients at random, as QSGD does. With its ratios of latencies, uploads of two bits per
element are as accurate after as many rounds, and take about half of the time.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import wirelessfl
from wirelessfl.results import draw_curves

# %%
# Defaults of the repository: mini-batches of 10, and latencies of 2 for a local step, 33 between
# client and edge server and 330 between edge server and cloud; here in milliseconds, with 32 bits
# per element. There they are constants, here an upload's follows from its bits. The repository also
# rounds what edge servers send to the cloud, which is sent with 32 bits here, and scales by the
# norm of a tensor, here by its largest magnitude. It trains on CIFAR-10 by default:
# ``dataset="cifar10", model="cifar-cnn"``. Its other defaults are placeholders, such as one client:
# the numbers of clients, cells and steps and the step size are of this example.

HIDDEN = 32
BITS = 32 * (64 * HIDDEN + HIDDEN + HIDDEN * 10 + 10)
settings = {"dataset": "digits", "hidden": (HIDDEN,), "cells": 4, "clients": 20, "batch_size": 10}
settings |= {"split": "dirichlet", "alpha": 1.0, "lr": 0.02, "local_steps": 5, "edge_rounds": 20}
settings |= {"uplink": "fixed", "rate_mbps": BITS / 33e-3 / 1e6, "step_seconds": 2e-3, "rounds": 8}
settings |= {"downlink_mbps": 1e3, "backhaul_mbps": 2 * BITS / 330e-3 / 1e6}  # down and up

runs = {"32 bits": {}}
for bits in (8, 2):
    runs[f"{bits} bits"] = {
        "uplink_compression": "quantisation",
        "uplink_compression_bits": bits,
    }
for name, compression in runs.items():
    with TemporaryDirectory() as folder:
        config = wirelessfl.Config.from_flags(
            "hfedavg", out=f"{folder}/run", **settings, **compression
        )
        runs[name] = [wirelessfl.run(config).rows]

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained")
draw_curves(axes, runs, "seconds", floor=0.5)
axes.grid(color="0.9")
plt.show()
