"""
SNR of a cell and its clients
=============================

Which clients of a cell can send fast? The background is the mean SNR at each place, over lines of
sight. Each client has a line of sight or none, and shadowing of its own, so that some of its dots
differ from the background by more than 10 dB.
"""

import matplotlib.pyplot as plt
import numpy as np

import channels as ch

cell, street = ch.Disc(radius_m=250), ch.Umi(carrier_ghz=3.5)
network = ch.placed_network(
    cell,
    street,
    cells=1,
    clients=40,
    stream=ch.Stream(seed=7),
    cpu_hz=2e9,
    transmit_power_w=ch.dbm_to_watts(23),
    bandwidth_hz=20e6,
    noise_figure_db=5,
)

# %%
# The same link budget at every place of a grid: power minus path loss minus noise.

x, y = np.meshgrid(np.linspace(-250, 250, 201), np.linspace(-250, 250, 201))
distance = np.hypot(x, y)
inside = (distance >= street.range_m[0]) & (distance <= 250)
d = distance[inside]
sight = street.los_probability(d)
loss_db = sight * street.loss_db(d, np.True_) + (1 - sight) * street.loss_db(d, np.False_)
snr_db = np.full(x.shape, np.nan)
snr_db[inside] = 23 - loss_db - ch.noise_power_dbm(20e6, 5)

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 3.1), layout="constrained")
look = {"vmin": -10, "vmax": 50, "cmap": "viridis"}
image = axes.imshow(snr_db, extent=(-250, 250, -250, 250), origin="lower", **look)
places, seen = network.placement.clients_m, network.placement.line_of_sight
for name, marker, which in (("line of sight", "o", seen), ("no line of sight", "^", ~seen)):
    own = network.mean_snr_db[which]
    at = places[which].T
    axes.scatter(*at, c=own, s=30, marker=marker, edgecolors="white", label=name, **look)
axes.set(xlabel="x (m)", ylabel="y (m)")
figure.colorbar(image, label="mean SNR in 20 MHz (dB)", extend="both")
figure.legend(loc="outside upper center", ncols=2, frameon=False)
plt.show()
