"""
Compressed uploads
==================

How many bits should an upload take? An own algorithm rounds, and an own uplink counts the bits.
"""

from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

from channels import Access, EqualBands
from wirelessfl import combinations, results, sweep
from wirelessfl.extend import Averaging, Uplink


@dataclass(frozen=True)
class Rounded(Averaging):
    bits: int = 4
    client_state = ("error",)

    def parts(self, params, cohort):  # what is sent, and what rounding left out
        exact = params - cohort.start + cohort.kept["error"]
        step = exact.abs().amax(1, keepdim=True).clamp(min=1e-12) / (2 ** (self.bits - 1) - 1)
        return step * (exact / step).round(), exact - step * (exact / step).round()

    def keep(self, params, state, cohort):
        return {"error": self.parts(params, cohort)[1]}

    def send(self, params, state, cohort):
        return {"update": self.parts(params, cohort)[0]}


@dataclass(frozen=True)
class CountedBands(Access):
    bits: int

    def serve(self, load, draw):
        return EqualBands().serve(replace(load, bits_per_element=self.bits), draw)

    def rates(self, snr, bandwidth_hz):  # under schedule buffered, which counts 32 bits
        return replace(r := EqualBands().rates(snr, bandwidth_hz), bps=r.bps * 32 / self.bits)


@dataclass(frozen=True)
class Counted(Uplink):
    sent_bits: int = 4  # seconds and joules count them; uplink_mib of rows still counts 32
    access = property(lambda self: CountedBands(self.sent_bits))


settings = {"clients": 10, "hidden": (32,), "bandwidth_hz": 1e6, "rounds": 25, "lr": 0.1}
bits = [{"bits": n, "uplink": f"{__name__}:Counted", "sent_bits": n} for n in (32, 8, 4, 2)]
with TemporaryDirectory() as folder:
    trained = sweep(combinations(f"{__name__}:Rounded", settings, coupled=bits), folder)
runs = {f"{b['bits']} bits": [run.rows] for b, run in zip(bits, trained, strict=True)}
plt.rcParams.update({"font.size": 8, "figure.dpi": 180})
figure, axes = plt.subplots(figsize=(3.6, 2.9), layout="constrained", subplot_kw={"xscale": "log"})
results.draw_curves(axes, runs, "seconds", floor=0.5)
plt.show()
