"""
Delay spread
============

What do echoes do to a round? They make a channel differ over its band, which then has good and bad
subcarriers at any time, so that hardly any upload fades as a whole. Here 20 clients at 10 dB send
in 9 MHz to one antenna, by the delay spread of an exponential profile.
"""

import matplotlib.pyplot as plt
import numpy as np

import channels as ch
from wirelessfl.results import line_look

clients, rounds, stream = 20, 200, ch.Stream(seed=1)
load = ch.Load(elements=np.full(clients, 1e5))


def draws_of(spread_ns, blocks):
    """Channels of a cell in some blocks."""
    fading = ch.DelayProfile(1e-9 * spread_ns, "exponential", subcarriers=64)
    network = ch.Network.from_snr(np.zeros(clients, int), cpu_hz=1e9, snr_db=10.0, fading=fading)
    return network.draws(stream, range(blocks))


# %%
# The rate of a whole band is the mean over its subcarriers, and the round waits for the slowest.

spreads = np.geomspace(1, 3000, 12)
rates, seconds = [], []
for spread in spreads:
    draws = draws_of(spread, rounds)
    rates.append(1e-6 / ch.airtime_seconds_per_bit(draws, "tdma"))
    seconds.append(ch.EqualBands().seconds(load, draws).max(axis=1))
print("round of equal bands:", *(f"{np.median(s):.2f}" for s in seconds[::3]), "s")

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, (band, rate, turn) = plt.subplots(1, 3, figsize=(6.4, 2.3), layout="constrained")
for place, spread in enumerate((30, 300)):
    draws = draws_of(spread, 1)
    gain_db = 10 * np.log10(draws.gain[0, 0] * draws.spectrum[0, 0])
    look = line_look(place) | {"marker": "", "linewidth": 1}
    band.plot(9 * ((np.arange(64) + 0.5) / 64 - 0.5), gain_db, label=f"{spread} ns", **look)
band.set(xlabel="offset (MHz)", ylabel="gain of a client (dB)")
curves = {"mean": np.mean, "5 % quantile": lambda values: np.quantile(values, 0.05)}
for place, (name, of) in enumerate(curves.items()):
    look = line_look(place) | {"markersize": 3}
    rate.semilogx(spreads, [of(values) for values in rates], label=name, **look)
rate.set(xlabel="delay spread (ns)", ylabel="rate (Mbit/s)", ylim=(0, None))
turn.semilogx(spreads, [np.median(values) for values in seconds], **line_look(0))
turn.set(xlabel="delay spread (ns)", ylabel="median round (s)", ylim=(0, None))
for axes in (band, rate):
    axes.legend(frameon=False, loc="upper left" if axes is band else "lower right")
for axes in (band, rate, turn):
    axes.grid(color="0.9")
plt.show()
