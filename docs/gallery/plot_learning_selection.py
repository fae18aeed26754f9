"""
A selection that learns
=======================

Can the server be fast without knowing channels and CPUs? ``soonest`` knows both, and takes the same
fast clients again and again: it stays near 90 %. ``ucb`` learns delays from the rounds so far, and
``utility`` also asks for losses. They reach 90 % in about half the time of random clients.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import wirelessfl
from wirelessfl.results import draw_curves

# %%
# The slowest CPU takes 20 times as long as the fastest. Clients have different labels, so that the
# fast ones alone do not know all of them. Curves are means over three seeds.

settings = {"dataset": "digits", "clients": 30, "clients_per_round": 4, "rounds": 120}
settings |= {"layout": "disc", "radius_m": 400, "uplink": "ofdma", "local_steps": 5, "lr": 0.1}
settings |= {"cpu_hz": (2e8, 4e9), "cycles_per_step": 1e8, "split": "dirichlet", "alpha": 0.5}
selections = {
    "random": {"select": "random"},
    "soonest": {"select": "soonest"},
    "ucb": {"select": "ucb", "ucb_bonus": 0.1},
    "utility": {"select": "utility"},
}
runs = {}
for name, chosen in selections.items():
    runs[name] = []
    for seed in range(3):
        with TemporaryDirectory() as folder:
            config = wirelessfl.Config.from_flags(
                "fedavg", hidden=(16,), seed=seed, out=f"{folder}/run", **chosen, **settings
            )
            runs[name].append(wirelessfl.run(config, on_note=lambda note: None).rows)

for name, seeds in runs.items():
    reached = [[row["sim_seconds"] for row in rows if row["accuracy"] >= 0.9] for rows in seeds]
    times = [f"{seconds[0]:.1f} s" if seconds else "never" for seconds in reached]
    print(f"{name}: 90 % after {', '.join(times)}")

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained")
draw_curves(axes, runs, "seconds")
axes.axhline(90, color="0.6", linewidth=0.8)
axes.set(xlim=(0, 40), ylim=(40, 100))
axes.grid(color="0.9")
plt.show()
