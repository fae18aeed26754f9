"""
Sessions with warm starts
=========================

From which model should training start when other clients arrive? Two groups of clients with
different labels alternate. The latest model has forgotten the labels of the returning group. The
proposed warm start weighs past models by similarity: from the fourth session on, little is lost.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import wirelessfl
from wirelessfl.results import draw_curves

SESSIONS, ROUNDS = 6, 6
settings = {"dataset": "digits", "clients": 12, "local_steps": 5, "lr": 0.05, "seed": 1}
settings |= {"sessions": SESSIONS, "rounds": ROUNDS, "overlap": 0.2}
starts = ["previous", "fresh", "proposed"]
with TemporaryDirectory() as folder:
    configs = wirelessfl.combinations("fedavg", settings | {"warm_start": starts})
    results = wirelessfl.sweep(configs, folder)

# %%
# Every session begins with a row of its initial model, before any training.

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained")
runs = {name: [run.rows] for name, run in zip(starts, results, strict=True)}
draw_curves(axes, runs, "rounds", legend=False)
for session in range(1, SESSIONS):
    axes.axvline(session * ROUNDS, color="0.7", linewidth=0.8)
figure.legend(loc="outside upper center", ncols=3, frameon=False)
plt.show()
