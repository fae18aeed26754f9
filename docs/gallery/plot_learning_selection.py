"""
A selection that learns
=======================

Can the server learn whose uploads fail? It does not know channels, but sees which updates arrive.
This selection is a bandit like UCB1: it ranks clients by their success rate so far, plus a bonus
for those that were rarely tried. It loses less than a third of what random participants lose.
"""

from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np

import wirelessfl
from wirelessfl.extend import Selection
from wirelessfl.results import draw_curves


@dataclass(frozen=True)
class Ucb(Selection):
    bonus: float = 0.5
    memory: ClassVar[dict] = {}  # not in checkpoints: a resumed run forgets

    def select(self, candidates):
        ledger, last = candidates.ledger, candidates.round  # rounds count from 1 in the ledger
        if last == 0:
            self.memory.update(tried=np.zeros(ledger.clients), arrived=np.zeros(ledger.clients))
        took_part = (ledger.chosen == last) & (last > 0)
        self.memory["tried"] += took_part
        self.memory["arrived"] += took_part & (ledger.heard == last)
        tried = np.maximum(self.memory["tried"], 1e-9)
        index = self.memory["arrived"] / tried + np.sqrt(self.bonus * np.log(last + 1) / tried)
        return candidates.smallest(-index[candidates.clients])


# %%
# ``waterfall`` loses packets at low SNR. ``best-channel`` knows the channels of each round, which
# the bandit does not. A run notes that a selection is biased.

settings = {"dataset": "digits", "clients": 20, "clients_per_round": 4, "rounds": 100}
settings |= {"layout": "disc", "radius_m": 600, "failures": "waterfall", "hidden": (16,)}
settings |= {"uplink": "ofdma", "local_steps": 5, "lr": 0.1, "split": "iid"}
names = {"random": "random", "UCB": f"{__name__}:Ucb", "best channel": "best-channel"}
runs = {}
for label, name in names.items():
    with TemporaryDirectory() as folder:
        config = wirelessfl.Config.from_flags(
            "fedavg", select=name, out=f"{folder}/run", **settings
        )
        runs[label] = [wirelessfl.run(config).rows]

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained")
draw_curves(axes, runs, "rounds", what="lost")
axes.set_ylabel("updates lost so far")
axes.grid(color="0.9")
plt.show()
