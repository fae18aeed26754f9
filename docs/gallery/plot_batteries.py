"""
Batteries
=========

What do small batteries cost? Every client has a charge, pays for training and sending, and
harvests packets of energy at random times. One whose battery holds too little waits until it is
charged, or drops out for good. Those that wait reach the accuracy of full batteries, later; without
those that drop out, training ends early.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import wirelessfl

# %%
# Sources of 20 mW on average, for clients whose rounds take up to 0.5 J. Clients have different
# labels, so that the model misses those that have dropped out.

settings = {"dataset": "digits", "clients": 20, "clients_per_round": 5, "rounds": 80}
settings |= {"layout": "disc", "radius_m": 400, "uplink": "ofdma", "local_steps": 5, "lr": 0.1}
settings |= {"cpu_hz": (1e9, 4e9), "cycles_per_step": 1e8, "split": "dirichlet", "alpha": 0.5}
battery = {"battery_joules": (0.5, 1.5), "recharge": "harvest", "packet_joules": 0.1}
battery |= {"packets_per_second": 0.2}
cases = {
    "no batteries": {},
    "wait": battery,
    "drop out": battery | {"on_empty": "drop"},
}
runs = {}
for name, chosen in cases.items():
    with TemporaryDirectory() as folder:
        config = wirelessfl.Config.from_flags(
            "fedavg", hidden=(16,), out=f"{folder}/run", **chosen, **settings
        )
        runs[name] = wirelessfl.run(config).rows

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, panels = plt.subplots(3, figsize=(3.6, 4.8), sharex=True, layout="constrained")
fields = {"accuracy": "test accuracy", "charge_mean": "mean charge (J)", "empty": "empty clients"}
for panel, (field, title) in zip(panels, fields.items(), strict=True):
    for (name, rows), color in zip(runs.items(), ("0.5", "#0B5FFF", "#F36712"), strict=True):
        if field in rows[-1]:
            seconds = [row["sim_seconds"] for row in rows]
            panel.plot(seconds, [row[field] for row in rows], color=color, label=name)
    panel.set_ylabel(title)
    panel.grid(color="0.9")
panels[0].legend(frameon=False)
panels[2].set_xlabel("simulated time (s)")
plt.show()
