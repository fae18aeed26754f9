"""
Beamforming against its bound
=============================

How far is a receive beamformer for over-the-air sums from the best one? The problem is NP-hard, but
each solution comes with a proven bound. Branch and bound proves the default optimal; the bound by
semidefinite relaxation is quick, and loose where clients outnumber antennas.
"""

import matplotlib.pyplot as plt
import numpy as np

from solvers import optimize_beamformer
from wirelessfl.results import draw_points

ANTENNAS, DRAWS, CLIENTS = 3, 5, [4, 7, 10, 13]
random = np.random.default_rng(1)
gap_db = {"relaxation's bound": {}, "default": {}, "Mirror-Prox": {}}
for clients in CLIENTS:
    h = random.standard_normal((DRAWS, clients, ANTENNAS, 2)).view(complex)[..., 0]
    best = optimize_beamformer(h, certificate="exact")
    relaxed = optimize_beamformer(h, certificate="sdr")
    other = optimize_beamformer(h, backend="mirror_prox")
    values = relaxed.bound, best.objective, other.objective
    for points, value in zip(gap_db.values(), values, strict=True):
        points[clients] = (10 * np.log10(value / best.bound)).tolist()

# %%
# The objective is the smallest gain of a client, min over i of abs(a^H h_i)^2 with norm(a) = 1.

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained")
for place, (name, points) in enumerate(gap_db.items()):
    draw_points(axes, points, name, place, shift=0.35 * (place - 1))
axes.set(xlabel="clients (3 antennas)", ylabel="minimum gain / exact bound (dB)")
axes.set_xticks(CLIENTS)
axes.set_ylim(top=1.5)
axes.grid(axis="y", color="0.9")
axes.legend(frameon=False, title="mean, dots: 5 draws", loc="upper left")
plt.show()
