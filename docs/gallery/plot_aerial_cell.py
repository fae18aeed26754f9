"""
Height of a flying cell
=======================

How high should a flying edge server hover? Higher up, more of its clients have a line of sight, and
all of them are farther away. Left: the mean loss at the edge of a cell of 500 m, with the published
optimum (dots). Right: seconds until the last of 20 clients has uploaded 1 MB, mean of 16 networks.
The slowest client decides them: among tall buildings it rarely has a line of sight at any height.
"""

import matplotlib.pyplot as plt
import numpy as np

import channels as ch

RADIUS = 500.0
ANGLES = {"suburban": 20.34, "urban": 42.44, "dense-urban": 54.62, "highrise": 75.52}
heights = np.geomspace(30, 4000, 60)


def edge_db(height, surroundings):
    """Mean loss at the edge of the cell."""
    model = ch.AirToGround(base_station_height_m=height, surroundings=surroundings)
    clear = model.los_probability(RADIUS)
    return clear * model.loss_db(RADIUS, True) + (1 - clear) * model.loss_db(RADIUS, False)


def seconds(height, surroundings):
    """Seconds until the last upload in equal bands has ended."""
    model = ch.AirToGround(base_station_height_m=height, surroundings=surroundings)
    radio = {"cells": 1, "clients": 20, "cpu_hz": 1e9, "noise_figure_db": 5}
    streams = [ch.Stream(seed) for seed in range(16)]
    drops = ch.placed_network(ch.Disc(RADIUS), model, stream=streams, **radio)
    budgets = [ch.link_budget(network, bits=8e6) for network in drops]
    return np.mean([budget.seconds["equal bands"].max() for budget in budgets])


# %%
# The mean loss is least at a fixed elevation, whatever the radius (Al-Hourani et al., 2014).

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 2.8), layout="constrained")
for surroundings, degrees in ANGLES.items():
    (line,) = left.semilogx(heights, [edge_db(h, surroundings) for h in heights])
    best = RADIUS * np.tan(np.radians(degrees)) + 1.5
    left.plot(best, edge_db(best, surroundings), "o", color=line.get_color())
    ends = [seconds(height, surroundings) for height in heights[::4]]
    right.loglog(heights[::4], ends, ".-", label=surroundings)
    print(f"{surroundings}: edge {best:.0f} m, last upload {heights[::4][np.argmin(ends)]:.0f} m")
left.set(xlabel="height (m)", ylabel="mean loss at the edge (dB)")
right.set(xlabel="height (m)", ylabel="last upload (s)")
figure.legend(loc="outside upper center", ncols=4, frameon=False)
plt.show()
