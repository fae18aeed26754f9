"""
Mask sizes against slowdown
===========================

How much of the model should a slow cell train? HIST gives each of four cells a part of the hidden
layer, and the slowest cell decides how long a round takes. Optimal sizes hand neurons of the slow
cell to the others; a cap on sizes, as the convergence bound sets it, limits what that saves.
"""

import matplotlib.pyplot as plt
import numpy as np

import channels as ch
from solvers import optimize_mask_sizes
from wirelessfl.results import line_look

NEURONS, CELLS = 300, 4
EVEN = NEURONS // CELLS
cell_of = np.repeat(np.arange(CELLS), 5)
neuron = ch.Load(cycles=20 * 3e7 / NEURONS, elements=795)  # 20 local steps of one neuron
slowdowns, sizes = np.geomspace(1, 8, 25), []
seconds = {"even sizes": [], "at most 1.2 x even": [], "optimal sizes": []}
for slowdown in slowdowns:
    cpu_hz = np.where(cell_of == 0, 2e9 / slowdown, 2e9)
    links = {"snr_db": 30.0, "bandwidth_hz": 9e6, "antennas": 10}
    network = ch.Network.from_snr(cell_of, cpu_hz=cpu_hz, **links)
    served = ch.EqualBands().serve(neuron, network.draw(ch.Stream(seed=1)))
    per_neuron = network.over_cells(np.maximum, served.seconds)
    capped = optimize_mask_sizes(per_neuron, NEURONS, cap=1.2 * EVEN)
    best = optimize_mask_sizes(per_neuron, NEURONS)
    ends = per_neuron.max() * EVEN, capped.objective, best.objective
    for curve, end in zip(seconds.values(), ends, strict=True):
        curve.append(end)
    sizes.append(best.value)

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, (upper, lower) = plt.subplots(2, figsize=(3.6, 3.8), sharex=True, layout="constrained")
for cell, curve in enumerate(np.transpose(sizes)):
    name = ("slow cell", "other cells")[cell] if cell < 2 else None
    upper.plot(slowdowns, curve, color="#F36712" if cell == 0 else "0.6", label=name)
upper.set(ylabel="neurons, optimal", ylim=(0, 1.4 * EVEN))
for place, (name, curve) in enumerate(seconds.items()):
    lower.plot(slowdowns, curve, label=name, **line_look(place) | {"marker": ""})
lower.set(xlabel="slowdown of the slow cell's CPUs", ylabel="edge round (s)", ylim=(0, None))
for panel in (upper, lower):
    panel.grid(color="0.9")
    panel.set_xlim(1, 8)
    panel.legend(frameon=False)
plt.show()
