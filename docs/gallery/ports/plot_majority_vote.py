"""
FEELwithSDRs: votes over the air without channel knowledge
==========================================================

Can clients train over the air without channel estimates? The settings are those of
alphansahin/Wireless-Federated-Learning-with-Non-coherent-Over-the-Air-Computation, on GitHub
(Sahin, IEEE GLOBECOM Workshops 2022, arXiv:2209.09954): five radios vote on the sign of each
gradient by the energy on two subcarriers. With equal labels, votes reach 90 % in about a quarter of
the time of uploads of 32 bits, one client after another. With six of ten labels per client they end
near 70 %.
"""

from dataclasses import dataclass
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import channels as ch
import wirelessfl
from wirelessfl.extend import Split
from wirelessfl.results import draw_curves


@dataclass(frozen=True)
class SixLabels(Split):
    def deal(self, samples, cell_of, stream):
        """Client i has a fifth of the samples with the labels i to i + 5."""
        clients, places = len(cell_of), np.arange(len(samples.labels))
        return [
            places[(places % clients == i) & (samples.labels >= i) & (samples.labels <= i + 5)]
            for i in range(clients)
        ]


# %%
# Five clients, mini-batches of 100, one gradient per upload, 20 MHz, and OFDM with 256 subcarriers
# and a prefix of 64 samples. Received powers are aligned: here the mean SNR of all is 20 dB, a
# number of this example. The repository trains a CNN on 500 images of each label per client,
# ``dataset="mnist"``.
# Its step is 0.001 along each sign, here it is ``lr`` times the clients' mean magnitude; its paper
# reports more than 95 % with equal and with different labels.

DEVICES, HZ, SUBCARRIERS, PREFIX = 5, 20e6, 256, 64
network = ch.Network.from_snr(
    np.zeros(DEVICES, int), cpu_hz=1e9, snr_db=20.0, bandwidth_hz=HZ, antennas=1
)
settings = {"dataset": "digits", "hidden": (32,), "batch_size": 100, "local_steps": 1, "lr": 0.3}
settings |= {"rounds": 100, "eval_every": 5}
votes = {"uplink": "aircomp", "convention": "majority", "subcarrier_hz": HZ / SUBCARRIERS}
votes |= {"symbol_seconds": (SUBCARRIERS + PREFIX) / HZ}
runs = {}
for labels, split in {"equal labels": "iid", "six labels": f"{__name__}:SixLabels"}.items():
    for name, uplink in {"votes": votes, "32 bits": {"uplink": "tdma"}}.items():
        with TemporaryDirectory() as folder:
            config = wirelessfl.Config.from_flags(
                "fedavg", split=split, out=f"{folder}/run", **settings, **uplink
            )
            run = wirelessfl.run(config, network=network, on_note=lambda note: None)
        runs[f"{name}, {labels}"] = [run.rows]

plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained")
draw_curves(axes, runs, "seconds", floor=0.3)
axes.grid(color="0.9")
plt.show()
