"""
Batteries
=========

Whose battery runs dry first? Every client has a charge, harvests energy, and pays for training and
sending. With random participants the first battery is empty after ten rounds. If those take part
that have spent least, none is after sixty, at nearly the same accuracy.
"""

from dataclasses import dataclass
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import wirelessfl
from wirelessfl.extend import Selection

CLIENTS, ROUNDS, START, HARVEST = 20, 60, 2.0, 0.05  # joules, and joules per round


@dataclass(frozen=True)
class Fullest(Selection):
    def select(self, candidates):
        """The clients of each cell that have spent least: all harvest the same."""
        return candidates.smallest(candidates.ledger.joules[candidates.clients])


# %%
# What is modelled: charges follow from the client log. A battery is never full, and a client below
# zero is not stopped, as ``--client-joules`` would do. A run notes that the selection is biased.

settings = {"dataset": "digits", "clients": CLIENTS, "clients_per_round": 5, "rounds": ROUNDS}
settings |= {"layout": "disc", "radius_m": 400, "uplink": "ofdma", "local_steps": 5, "lr": 0.1}
settings |= {"cpu_hz": (1e9, 4e9), "cycles_per_step": 1e8, "hidden": (16,), "client_log": True}
plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, panels = plt.subplots(2, figsize=(3.6, 4), sharex=True, sharey=True, layout="constrained")
selections = {"random": "random", "least drained": f"{__name__}:Fullest"}
for panel, (name, selection) in zip(panels, selections.items(), strict=True):
    with TemporaryDirectory() as folder:
        config = wirelessfl.Config.from_flags(
            "fedavg", select=selection, out=f"{folder}/run", **settings
        )
        run = wirelessfl.run(config)
        log = wirelessfl.read_client_log(run.directory)
    spent = np.zeros((ROUNDS + 1, CLIENTS))
    spent[log["round"], log["client"]] = log["compute_joules"] + log["send_joules"]
    charge = START + HARVEST * np.arange(ROUNDS + 1)[:, None] - spent.cumsum(0)
    panel.plot(charge, color="0.6", linewidth=0.8)
    panel.plot(charge.min(1), color="#F36712", linewidth=1.8, label="lowest charge")
    panel.axhline(0, color="black", linewidth=0.8)
    accuracy = run.rows[-1]["accuracy"]
    panel.set(title=f"{name}: accuracy {accuracy:.0%}", ylabel="charge (J)")
panels[1].set_xlabel("round")
panels[1].legend(frameon=False)
plt.show()
