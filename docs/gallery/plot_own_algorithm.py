"""
Your own algorithm in 20 lines
==============================

How much code is a published method? FedDyn (Acar et al., ICLR 2021) corrects the drift of clients
with different labels by a dynamic penalty. A client rule and a server rule are all that it takes:
training, clock, radio, rows and resume are those of every algorithm.
"""

from dataclasses import dataclass
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import torch

import wirelessfl
from wirelessfl.extend import Averaging
from wirelessfl.results import draw_curves


@dataclass(frozen=True)
class FedDyn(Averaging):
    """Clients add penalty/2 ||x - x0||^2 - <dual_i, x> to their losses."""

    penalty: float = 0.3
    client_state = ("dual",)

    def gradient(self, grads, params, cohort):
        return grads - cohort.kept["dual"] + self.penalty * (params - cohort.start)

    def keep(self, params, state, cohort):
        return {"dual": cohort.kept["dual"] - self.penalty * (params - cohort.start)}

    def initial(self, params):
        return {"params": params, "dual": torch.zeros_like(params)}

    def merge(self, server, received):
        change = received.mean["update"]
        dual = server["dual"] - self.penalty * received.share["update"] * change
        step = self.server_lr * (change - dual / self.penalty)
        return {"params": server["params"] + step, "dual": dual}


# %%
# The class is named by its module. In a file of yours, ``feddyn.py:FedDyn`` is its name on the
# command line too, and ``--penalty`` its flag. Clients hold two labels or three each.

settings = {"dataset": "digits", "clients": 10, "rounds": 25, "split": "noniid", "lr": 0.05}
names = {"FedDyn": f"{__name__}:FedDyn", "FedAvg": "fedavg"}
runs = {}
with TemporaryDirectory() as folder:
    for label, name in names.items():
        configs = wirelessfl.combinations(name, settings | {"hidden": (32,), "seed": [1, 2]})
        runs[label] = [run.rows for run in wirelessfl.sweep(configs, f"{folder}/{label}")]

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained")
draw_curves(axes, runs, "rounds", floor=0.5)
axes.grid(color="0.9")
plt.show()
