"""
Wireless-FL: resource blocks and lost packets
=============================================

Which clients should get the few resource blocks? The settings are those of mzchen0/Wireless-FL
(https://github.com/mzchen0/Wireless-FL; Chen et al., IEEE TWC 2021, arXiv:1909.07972): clients at
up to 500 m with 10 mW, three blocks with different interference, and packets of which more are lost
the farther a client is. The assignment of the most expected samples is ahead of random ones.
"""

from itertools import pairwise
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import channels as ch
import wirelessfl
from solvers import assign_resource_blocks
from wirelessfl.results import draw_curves

# %%
# A packet is lost with probability 1 - exp(-1.08 / SINR), the path gain is 1 / d². The repository
# trains 50 neurons on MNIST with 100 to 600 samples a client, ``dataset="mnist"``, by MATLAB's
# ``patternnet``; here a client has a fourth of the samples and takes gradient steps. Channels fade,
# 15 clients share three blocks, and limits of delay and energy are left out. A study with more
# blocks, and with these limits, is in docs/results/allocation.md.

SAMPLES = np.array([1, 2, 3, 4, 5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 1]) * 25
INTERFERENCE_W, NOISE_W, POWER_W = np.array([1e-8, 6e-8, 1e-7]), 1e-14, 0.01
WATERFALL_DB, BLOCK_HZ = 10 * np.log10(1.08), 1e6
bounds = np.append(0, SAMPLES.cumsum())
parts = [np.arange(first, last) for first, last in pairwise(bounds)]
settings = {"dataset": "digits", "hidden": (50,), "local_steps": 1, "batch_size": 150, "lr": 0.3}
settings |= {"uplink": "ofdma", "failures": "waterfall", "waterfall_db": WATERFALL_DB}
settings |= {"weighting": "samples", "rounds": 60, "eval_every": 3}

runs = {"best assignment": [], "random": []}
for seed in range(5):
    random = np.random.default_rng(seed)
    metres = 500 * random.random((len(SAMPLES), 1))
    sinr = POWER_W / metres**2 / (INTERFERENCE_W + NOISE_W)  # [clients, blocks]
    lost = ch.packet_error_probability(sinr, waterfall_db=WATERFALL_DB)
    best = assign_resource_blocks(lost, weights=SAMPLES, count=3).value.block
    drawn = np.full(len(SAMPLES), -1)
    drawn[random.permutation(len(SAMPLES))[:3]] = range(3)
    for name, block in zip(runs, (best, drawn), strict=True):
        clients = np.flatnonzero(block >= 0)
        # Each client concentrates its power in a third of the band: three times this SNR there.
        snr_db = 10 * np.log10(sinr[clients, block[clients]] / 3)
        network = ch.Network.from_snr(
            np.zeros(3, int), cpu_hz=1e9, snr_db=snr_db, bandwidth_hz=3 * BLOCK_HZ
        )
        split = [parts[client] for client in clients]
        with TemporaryDirectory() as folder:
            config = wirelessfl.Config.from_flags(
                "fedavg", seed=seed, out=f"{folder}/run", **settings
            )
            run = wirelessfl.run(config, network=network, split=split, on_note=lambda note: None)
        runs[name].append(run.rows)

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained")
draw_curves(axes, runs, "rounds")
axes.grid(color="0.9")
plt.show()
