"""
Devices
=======

What does a round cost on a phone, a board or a GPU? Seconds and joules of 100 local steps on each
built-in device, and on ten phones of the mix, of which the slowest sets the pace.
"""

import matplotlib.pyplot as plt

import wirelessfl
from wirelessfl.results import line_look

settings = {"dataset": "fashion-mnist", "model": "lenet5", "rounds": 1, "local_steps": 100}
settings |= {"batch_size": 50, "clients": 10, "uplink": "fixed", "rate_mbps": 1000.0}
KINDS = {
    "phones": ("moto-g7", "xiaomi-mi-8", "oneplus-7-pro", "oneplus-8"),
    "boards": ("raspberry-pi-zero-2w", "raspberry-pi-4", "raspberry-pi-5", "orange-pi-5"),
    "computers": ("lattepanda-mu", "mac-mini-m4", "ampere-altra-q64"),
    "GPUs": ("jetson-nano", "jetson-xavier-nx", "jetson-agx-orin", "rtx-3060", "rtx-4090"),
}


def cost(devices):
    """Seconds of a round, and joules of a client."""
    config = wirelessfl.Config.from_flags("fedavg", **settings, devices=devices)
    row = wirelessfl.price(config).rows[-1]
    return row["sim_seconds"], row["joules"]


# %%
# FLOP/s are half of the peak in single precision, or what HPL reaches; small models reach less.
# Each row of the table has its source, ``channels.DEVICES["raspberry-pi-4"].source``.

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
for place, (kind, names) in enumerate(KINDS.items()):
    look = line_look(place) | {"linestyle": ""}
    costs = {name: cost(name) for name in names}
    axes.plot(*zip(*costs.values(), strict=True), label=kind, **look)
    for number, (name, point) in enumerate(costs.items()):
        at = (-4, 9 * (number % 2) - 7) if place > 1 else (4, 7 * place - 5)
        side = {"xytext": at, "ha": "right" if place > 1 else "left"}
        axes.annotate(name, point, textcoords="offset points", fontsize=6, **side)
seconds, joules = cost("mixed")
axes.plot(seconds, joules, "k*", label="mixed, mean of ten")
axes.set(xscale="log", yscale="log", xlabel="round (s)", ylabel="energy of a client (J)")
axes.margins(x=0.4, y=0.12)
axes.legend(frameon=False)
plt.show()
