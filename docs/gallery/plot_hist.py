"""
HIST against HFedAvg
====================

What do submodels save? Under HFedAvg every cell trains the whole model; under HIST each of four
cells trains and sends a disjoint part of the hidden neurons. HIST needs more rounds, of which each
takes a fourth of the time.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import wirelessfl
from wirelessfl.results import draw_curves

settings = {"dataset": "digits", "cells": 4, "clients": 12, "rounds": 15, "local_steps": 10}
settings |= {"lr": 0.1, "cycles_per_step": 1e7, "seed": [1, 2]}
with TemporaryDirectory() as folder:
    results = wirelessfl.sweep(wirelessfl.combinations("hist,hfedavg", settings), folder)

# %%
# Rows have the accuracy and what it has cost so far: rounds, simulated seconds, joules, MiB.

runs = {"HIST": [run.rows for run in results[:2]], "HFedAvg": [run.rows for run in results[2:]]}
plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, panels = plt.subplots(2, figsize=(3.6, 4), sharey=True, layout="constrained")
for panel, against in zip(panels, ("rounds", "seconds"), strict=True):
    draw_curves(panel, runs, against, floor=0.6)
    panel.grid(color="0.9")
plt.show()
