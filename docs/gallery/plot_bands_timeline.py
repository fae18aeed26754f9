"""
Equal and optimal bands as timelines
====================================

How much sooner does a round end if clients with poor channels get wider bands? With equal bands,
everybody waits for the weakest client. With optimal bands, all updates arrive together, and sooner,
but clients send for longer, which costs energy.
"""

import matplotlib.pyplot as plt
import numpy as np

import channels as ch
from solvers import OptimalBands

stream = ch.Stream(seed=5)
network = ch.placed_network(
    ch.Disc(radius_m=400),
    ch.Tr36814(),
    cells=1,
    clients=8,
    stream=stream,
    cpu_hz=np.linspace(1e9, 3e9, 8),
    bandwidth_hz=5e6,
)
draw = network.draw(stream.child("channel"))
load = ch.Load(cycles=4e8, elements=50_000)  # local steps, then 1.6 Mbit
order = np.argsort(-network.mean_snr_db)

# %%
# An access serves a load over the drawn channels: seconds and joules of each client.

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, panels = plt.subplots(2, figsize=(3.6, 3.6), sharex=True, layout="constrained")
ready = load.ready_seconds(network)[order]
names = [f"{snr:.0f} dB" for snr in network.mean_snr_db[order]]
accesses = {"Equal bands": ch.EqualBands(), "Optimal bands": OptimalBands()}
for panel, (name, access) in zip(panels, accesses.items(), strict=True):
    service = access.serve(load, draw)
    seconds = service.seconds[order]
    places = np.arange(8)
    panel.barh(places, ready, color="0.75", label="computes")
    panel.barh(places, seconds - ready, left=ready, color="#1054FA", label="sends")
    panel.axvline(seconds.max(), color="#F36712", label="end of the round")
    panel.set_yticks(places, names)
    panel.invert_yaxis()
    joules = (service.joules - load.compute_joules(network)).sum()
    panel.set_title(f"{name}: {seconds.max():.2f} s, {joules:.2f} J to send")
panel.set_xlabel("time in the round (s)")
figure.supylabel("mean SNR of the client", fontsize=8)
figure.legend(
    *panel.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False
)
plt.show()
