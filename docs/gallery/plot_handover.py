"""
Handover
========

Which edge server serves a client that walks past three of them, and what does it spare the others?
It stays in its first cell, or it is handed over to the largest mean gain: path loss, line of sight
and shadowing.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import channels as ch
import wirelessfl
from wirelessfl.results import line_look

walker, rounds, block = 3, 120, 5.0  # seconds from one round to the next
street = ch.Positions(
    base_stations_m=[[0, 15], [250, 15], [500, 15]],
    clients_m=[[-30, 0], [20, 0], [40, 30], [0, 0], [220, 0], [280, 20], [480, 0], [530, 20]],
    cell_of=[0, 0, 0, 0, 1, 1, 2, 2],
)
walk = Path(tempfile.mkdtemp()) / "walk.csv"
walk.write_text(f"client,seconds,x_m,y_m\n{walker},0,0,0\n{walker},{block * rounds},500,0\n")
radio = {"stream": ch.Stream(seed=2), "cpu_hz": 2e9, "bandwidth_hz": 2e6}
radio |= {"mobility": ch.PositionTrace(walk), "block_seconds": block}
rules = ("none", "strongest")
networks = [ch.placed_network(street, ch.Umi(), handover=rule, **radio) for rule in rules]

# %%
# A round ends with its slowest client. A price needs no training.

config = wirelessfl.Config.from_flags("hfedavg", dataset="digits", rounds=rounds, uplink="ofdma")
cells, gains, seconds = [], [], []
for network in networks:
    served = [network.served(number, [walker]) for number in range(rounds)]
    draws = [one.draw(ch.Stream(1), number) for number, one in enumerate(served)]
    cells.append(np.array([draw.network.cell_of[0] for draw in draws]))
    gains.append([draw.network.gain_db[0] + draw.changes_db[0] for draw in draws])
    seconds.append(wirelessfl.price(config, network=network, joules=False).seconds)

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(3, sharex=True, figsize=(5.4, 3.6), layout="constrained")
for place, rule in enumerate(rules):
    look = line_look(place) | {"marker": "", "linestyle": "-", "linewidth": 0.9}
    for panel, values in zip(axes, (cells, gains, seconds), strict=True):
        panel.plot(block * np.arange(rounds), values[place], label=f"handover {rule}", **look)
axes[0].set(ylabel="serving cell", yticks=range(3))
axes[0].legend(frameon=False, loc="upper left")
axes[1].set_ylabel("mean gain (dB)")
axes[2].set(ylabel="round (s)", xlabel="time (s)", yscale="log")
plt.show()
