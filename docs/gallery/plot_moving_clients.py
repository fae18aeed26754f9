"""
Moving clients
==============

How do rounds change while clients move? One pedestrian walks towards the base station, another one
away from it. Positions give path losses, an AR(1) process with Jakes' correlation the fading; as a
recorded channel they replace the layout, with one block per round.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import j0

import channels as ch
import wirelessfl
from wirelessfl.results import line_look

BLOCKS, CLIENTS, ANTENNAS = 800, 10, 4
BLOCK_SECONDS, SPEED, CARRIER_HZ = 0.05, 1.5, 0.9e9  # SPEED in m/s
time = BLOCK_SECONDS * np.arange(BLOCKS)
metres = np.full((BLOCKS, CLIENTS), 50.0)  # the others stand still
metres[:, 0], metres[:, 1] = 110 - SPEED * time, 50 + SPEED * time
rho = j0(2 * np.pi * BLOCK_SECONDS * CARRIER_HZ * SPEED / 3e8)
random = np.random.default_rng(1)
new = random.standard_normal((BLOCKS, CLIENTS, ANTENNAS, 2)) @ [1, 1j] / np.sqrt(2)
fading = new.copy()
for block in range(1, BLOCKS):
    fading[block] = rho * fading[block - 1] + np.sqrt(1 - rho**2) * new[block]
loss_db = ch.path_loss_db(metres)
recorded = ch.Recorded(fading * 10 ** (-loss_db[:, :, None] / 20))

# %%
# A price needs no training. Each round takes the next block, whatever the round's duration: blocks
# should last about as long as rounds.

network = ch.Network(np.zeros(CLIENTS, int), cpu_hz=2e9, bandwidth_hz=2e6, **recorded.links)
settings = {"dataset": "digits", "hidden": (48,), "rounds": BLOCKS, "uplink": "ofdma"}
configs = wirelessfl.combinations("fedavg", settings | {"allocation": ["equal", "optimal"]})
prices = [wirelessfl.price(config, network=network, joules=False) for config in configs]

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, (upper, lower) = plt.subplots(2, figsize=(3.6, 4), sharex=True, layout="constrained")
for client, name in enumerate(("approaches", "leaves")):
    look = line_look(client) | {"marker": ""}
    gain_db = 10 * np.log10((np.abs(fading[:, client]) ** 2).mean(-1)) - loss_db[:, client]
    upper.plot(time, gain_db, color=look["color"], alpha=0.35, linewidth=0.5)
    upper.plot(time, -loss_db[:, client], label=name, **look)
upper.set_ylabel("gain per antenna (dB)")
for place, priced in enumerate(prices):
    look = line_look(place) | {"marker": "", "linestyle": "-", "linewidth": 0.6}
    lower.plot(time, 1000 * priced.seconds, label=("equal bands", "optimal bands")[place], **look)
lower.set(xlabel="time (s)", ylabel="round (ms)")
for panel in (upper, lower):
    panel.margins(y=0.25)
    panel.legend(frameon=False, ncols=2, loc="upper center")
plt.show()
