"""
Capacity and a table of modulation and coding
=============================================

How far below Shannon's capacity does a client send that has the modulations and codes of 5G? Dots
are the SNRs of 40 clients of a street-canyon cell. From 23 dB on, more power buys no higher rate.
"""

import matplotlib.pyplot as plt
import numpy as np

import channels as ch
from wirelessfl.results import line_look

stream = ch.Stream(seed=1)
network = ch.umi(cells=1, clients=40, stream=stream)
draw = network.draw(stream.child("channel"))
received_db = 10 * np.log10(draw.snr * draw.gain)
snr_db = np.arange(-15, 60, 0.05)
laws = {"Shannon": "shannon", "modulation and coding": "mcs"}

# %%
# Slots of equal length: seconds of an upload of 1 MiB, with both.

load = ch.Load(elements=2**18)
for name, law in laws.items():
    seconds = ch.EqualSlots(law).seconds(load, draw)
    print(f"{name}: slowest upload {seconds.max():.1f} s, median {np.median(seconds):.1f} s")

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 3.0), layout="constrained")
for place, (name, law) in enumerate(laws.items()):
    look = line_look(place)
    axes.plot(snr_db, ch.spectral_efficiency(10 ** (snr_db / 10), law), label=name,
              **look | {"marker": ""})  # fmt: skip
    at = ch.spectral_efficiency(draw.snr * draw.gain, law)
    axes.plot(received_db, at, **look | {"linestyle": "", "markersize": 3})
axes.set(xlabel="SNR, all antennas (dB)", ylabel="bit/s/Hz")
axes.grid(color="0.9")
axes.legend(frameon=False)
plt.show()
