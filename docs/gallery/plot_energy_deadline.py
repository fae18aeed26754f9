"""
Energy against deadline
=======================

How many joules does a later deadline save? A client with time to spare computes at a lower clock
and sends with less power. In the time of equal bands, the least energy is about a tenth of theirs.
"""

import matplotlib.pyplot as plt
import numpy as np

import channels as ch
from solvers import EnergyWithinDeadline, OptimalBands
from wirelessfl.results import line_look

stream = ch.Stream(seed=2)
network = ch.placed_network(
    ch.Disc(radius_m=300),
    ch.Umi(),
    cells=1,
    clients=20,
    stream=stream,
    cpu_hz=2e9,
    bandwidth_hz=10e6,
)
draw = network.draw(stream.child("channel"))
load = ch.Load(cycles=5e8, elements=20_000)

# %%
# Two accesses at full power and speed, and the least energy for each deadline from the earliest on.

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained")
for place, access in enumerate((ch.EqualBands(), OptimalBands()), 1):
    served = access.serve(load, draw)
    first, name = served.seconds.max(), ("equal bands", "optimal bands")[place - 1]
    look = line_look(place) | {"linestyle": "", "markersize": 7}
    axes.plot(first, served.joules.sum(), label=f"{name}, full power", **look)
deadlines = first * np.geomspace(1, 5, 60) * (1 + 1e-9)
joules = [EnergyWithinDeadline(end).serve(load, draw).joules.sum() for end in deadlines]
axes.plot(deadlines, joules, label="least energy", **line_look(0) | {"marker": ""})
axes.set(xlabel="deadline of the round (s)", ylabel="energy of 20 clients (J)", yscale="log")
ticks = [0.2, 0.5, 1, 2, 5]
axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
axes.minorticks_off()
axes.grid(color="0.9")
axes.legend(frameon=False)
plt.show()
