"""
Moving clients
==============

How do rounds change while clients move? Ten clients walk at random in a cell of 120 m. Their
positions give path loss, shadowing and lines of sight in each block, and their speed the Doppler
shift of the fading.
"""

import matplotlib.pyplot as plt
import numpy as np

import channels as ch
import wirelessfl
from wirelessfl.results import line_look

rounds, block = 800, 0.2  # seconds from one round to the next
cell, street = ch.Disc(radius_m=120), ch.Umi(carrier_ghz=3.5)
walk = {"mobility": ch.RandomWaypoint(speed_kmh=5.0, doppler="jakes"), "block_seconds": block}
network = ch.placed_network(
    cell,
    street,
    cells=1,
    clients=10,
    stream=ch.Stream(seed=6),
    cpu_hz=2e9,
    bandwidth_hz=2e6,
    antennas=4,
    **walk,
)
time, ways = block * np.arange(rounds), network.positions_m(range(rounds))
gain_db = network.gain_db + network.draws(ch.Stream(1), range(rounds)).changes_db

# %%
# A price needs no training. Optimal bands give more of the band to clients that are far away.

settings = {"dataset": "digits", "hidden": (48,), "rounds": rounds, "uplink": "ofdma"}
configs = wirelessfl.combinations("fedavg", settings | {"allocation": ["equal", "optimal"]})
prices = [wirelessfl.price(config, network=network, joules=False) for config in configs]

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure = plt.figure(figsize=(5.4, 2.9), layout="constrained")
axes = figure.subplot_mosaic([["way", "gain"], ["way", "round"]], width_ratios=(1.1, 1))
for client in (0, 1):
    look = line_look(client) | {"marker": "", "linewidth": 1}
    axes["way"].plot(*ways[:, client].T, **look)
    axes["way"].plot(*ways[0, client], "o", color=look["color"])
    axes["gain"].plot(time, gain_db[:, client], **look)
axes["way"].plot(*network.placement.base_stations_m.T, "k^")
axes["way"].set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
axes["gain"].set_ylabel("mean gain (dB)")
for place, priced in enumerate(prices):
    look = line_look(place) | {"marker": "", "linestyle": "-", "linewidth": 0.6}
    name = ("equal bands", "optimal bands")[place]
    axes["round"].plot(time, 1000 * priced.seconds, label=name, **look)
axes["round"].set(xlabel="time (s)", ylabel="round (ms)", ylim=(0, None))
axes["round"].legend(frameon=False, loc="lower right")
plt.show()
