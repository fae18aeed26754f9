"""
AirComp error against theory
============================

Is the error of a sum over the air the one that the formula predicts? Ten clients send at once, and
the server receives their mean with noise. Dots are simulated sums, lines the predicted mean squared
errors. Phases that are off by 10 degrees leave an error that no power removes.
"""

import matplotlib.pyplot as plt
import numpy as np

import channels as ch
from solvers import optimize_beamformer
from wirelessfl.results import line_look

CLIENTS, ANTENNAS, ELEMENTS = 10, 4, 1000
random = np.random.default_rng(3)
updates = 0.1 * random.standard_normal((CLIENTS, ELEMENTS))
h = random.standard_normal((CLIENTS, ANTENNAS, 2)).view(complex)[..., 0] / np.sqrt(2)
beamformer = optimize_beamformer(h).value
cases = {
    "published convention": {"convention": "published"},
    "physical convention": {"convention": "physical"},
    "physical, phases off by 10°": {"convention": "physical", "phase_error": np.deg2rad(10)},
}

# %%
# The published convention limits the power of precoders, the physical one that of signals.

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 3.0), layout="constrained")
decibels = np.arange(-10, 41, 5)
for place, (name, case) in enumerate(cases.items()):
    simulated, predicted = [], []
    for snr_db in decibels:
        streams = [ch.Stream(seed) for seed in range(100)]
        sums = [
            ch.aircomp_mean(updates, h, beamformer, snr_db=snr_db, stream=s, **case)
            for s in streams
        ]
        simulated.append(np.mean([one.realised_error for one in sums]))
        predicted.append(np.mean([one.predicted_error for one in sums]))
    look = line_look(place)
    axes.plot(decibels, predicted, label=name, **look | {"marker": ""})
    axes.plot(decibels, simulated, **look | {"linestyle": ""})
axes.set(xlabel="SNR of a client (dB)", ylabel="mean squared error", yscale="log")
axes.grid(color="0.9")
axes.legend(frameon=False)
plt.show()
