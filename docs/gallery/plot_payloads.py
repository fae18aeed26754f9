"""
What is sent
============

How many bits should an upload take? Quantisation and top-k against seconds.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

from wirelessfl import combinations, results, sweep

settings = {"clients": 10, "hidden": (32,), "bandwidth_hz": 1e6, "rounds": 25, "lr": 0.1}
top = {"uplink_compression": "top-k", "uplink_compression_keep": 0.02}
ways = {
    "32 bits": {},
    "2 bits": {"uplink_compression": "quantisation", "uplink_compression_bits": 2},
    "2 %, no feedback": top,
    "2 %, feedback": top | {"error_feedback": True},
}
with TemporaryDirectory() as folder:
    trained = sweep(combinations("fedavg", settings, coupled=list(ways.values())), folder)
runs = {name: [run.rows] for name, run in zip(ways, trained, strict=True)}
plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained", subplot_kw={"xscale": "log"})
results.draw_curves(axes, runs, "seconds", floor=0.5)
plt.show()
