"""
RA-Fed widths
=============

What does a narrow submodel for slow clients save? CPUs differ by a factor of up to 20. With full
models, all wait for the slowest client. With the fastest widths with which 12 of 20 clients cover
each neuron, slow clients train fewer neurons: rounds are shorter, and each teaches a little less.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import wirelessfl
from wirelessfl.results import draw_curves

settings = {
    "dataset": "digits",
    "model": "mlp",
    "clients": 20,
    "rounds": 20,
    "local_steps": 10,
    "lr": 0.1,
}
settings |= {"cpu_hz": (2e8, 4e9), "path_gain_db": (-20.0, 10.0), "masks": "covered"}
widths = {
    "full models": {"capacities": (1.0,)},
    "fastest widths": {"budget": "fastest", "min_coverage": 12},
}
with TemporaryDirectory() as folder:
    configs = wirelessfl.combinations("ra-fed", settings, coupled=list(widths.values()))
    results = wirelessfl.sweep(configs, folder)

runs = {name: [run.rows] for name, run in zip(widths, results, strict=True)}
plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained")
draw_curves(axes, runs, "seconds", common=True)
axes.grid(color="0.9")
plt.show()
