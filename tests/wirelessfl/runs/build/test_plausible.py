"""Notes on implausible values: each rule has its threshold, and published settings have none."""

import warnings
from dataclasses import dataclass

import pytest

import wirelessfl
from channels.plausible import network_notes
from channels.streams import Stream
from experiments.papers import papers
from experiments.studies import SCALES
from wirelessfl import Config
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.runs.build import build
from wirelessfl.runs.build.network import build_network
from wirelessfl.runs.build.plausible import implausible
from wirelessfl.training.workers.processes import cores

SMALL = {
    "dataset": "digits", "clients": 3, "rounds": 1, "local_steps": 1, "hidden": (4, 4),
    "executor": "loop", "workers": 1,
}  # fmt: skip


def notes_of(algorithm="fedavg", **settings):
    config = Config.from_flags(algorithm, **SMALL | settings)
    network = build_network(config.network, Stream(config.run.seed), config)
    return implausible(config, network)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"bandwidth_hz": 9}, "bandwidth_hz is 9 Hz: for 9 MHz, give 9e+06."),
        ({"cpu_hz": (2, 2)}, "cpu_hz is 2 Hz: for 2 GHz, give 2e+09."),
        ({"transmit_power_w": 5}, "for 5 dBm, give transmit_power_dbm."),
        ({"transmit_power_dbm": 0.2}, "transmit_power_dbm is 0.2, 1 mW: for 0.2 W, give"),
        ({"snr_db": 150}, "the mean SNR at the edge server is up to 150 dB"),
        ({"layout": "ring", "distance_m": 2, "path_loss": "log-distance"}, "more than 2 m from"),
        ({"downlink_mbps": 5e7}, "downlink_mbps is 5e+07, 50 Tbit/s: give Mbit/s, not bit/s."),
        ({"downlink_mbps": 1e-4}, "downlink_mbps is 0.0001, 100 bit/s: give Mbit/s."),
        ({"uplink": "fixed", "rate_mbps": 1e7}, "rate_mbps is 1e+07, 10 Tbit/s"),
        ({"threads": 1 + cores()}, f"but this machine has {cores()} cores"),
        ({"cpu_hz": (1e9, 2e10)}, "Hz, more than 10 GHz, and the energy grows with its square"),
        ({"switched_capacitance": 1e-10}, "switched_capacitance is 1e-10: a CPU at"),
        ({"uplink": "aircomp", "snr_db": -200}, "at most -200 dB, below -50 dB: see snr_db"),
        ({"step_seconds": 2000}, "step_seconds is 2000, the seconds of a single local step"),
    ],
)
def test_each_rule(settings, told):
    assert any(told in note for note in notes_of(**settings))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"bandwidth_hz": 1e3},
        {"cpu_hz": (1e6, 2e6)},
        {"transmit_power_w": 2},
        {"transmit_power_dbm": 1},
        {"snr_db": 120, "path_gain_db": (-90, -80)},
        {"layout": "ring", "distance_m": 5, "path_loss": "log-distance"},
        {"downlink_mbps": 1e5},
        {"threads": cores()},
        {"step_seconds": 100},
        {"cpu_hz": (1e9, 1e10), "switched_capacitance": 1e-27},
        {"snr_db": -50},
        {"uplink": "fixed"},
    ],
)
def test_no_rule_speaks_below_its_threshold(settings):
    assert notes_of(**settings) == []


def test_a_round_of_days_is_a_note_that_names_the_cause(tmp_path):
    """Once, at the start; the run goes on."""
    told = []
    config = Config.from_flags("fedavg", **SMALL, cycles_per_step=1e16, out=tmp_path / "run")
    wirelessfl.run(config, on_note=told.append)
    note, energy = told
    assert energy.startswith("a client spends")
    seconds = build(config).planner.plan(0).price.seconds.max()
    assert note.startswith(f"a round takes {seconds:.2g} s, {seconds / 86400:.3g} days, for 100 %")
    assert note.endswith("computes: see cpu_hz and cycles_per_step.")


@pytest.mark.parametrize(("steps", "noted"), [(10, False), (60, True)])
def test_a_client_that_spends_more_than_a_server_is_a_note(steps, noted):
    """4e9 cycles/s at 500 W for steps of 1e3 s; kappa f^3 itself is usual for a server."""
    power, clock = 500.0, 4e9
    settings = SMALL | {"local_steps": steps, "cycles_per_step": 1e3 * clock}
    settings |= {"cpu_hz": (clock, clock), "switched_capacitance": power / clock**3}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        row = wirelessfl.price(Config.from_flags("fedavg", **settings)).rows[-1]
    assert row["joules_max"] == pytest.approx(steps * 1e3 * power, rel=1e-3)
    text = f"a client spends {row['joules_max']:.2g} J in a round"
    assert [str(each.message)[: len(text)] for each in caught] == [text] * noted


@pytest.mark.parametrize(("radius", "costs"), [(200, False), (1000, True)])
def test_optimal_bands_that_cost_much_energy_are_a_note(radius, costs, tmp_path):
    """Of runs, prices and plans with clients at the cell edge, for which the others send longer."""
    flags = SMALL | {"clients": 10, "layout": "disc", "radius_m": radius, "seed": 3}
    decided = Config.from_flags("fedavg", **flags, uplink="ofdma", allocation="optimal")
    for made in (wirelessfl.run, wirelessfl.price, wirelessfl.plan):
        config = Config.from_flags("fedavg", **flags) if made is wirelessfl.plan else decided
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", wirelessfl.Note)
            found = made(config)
        notes = [str(each.message) for each in caught]
        if made is wirelessfl.price:
            end = found.rows[-1]
            assert (end["joules"] > 2 * end["equal_joules"]) == costs
            text = f"{end['joules']:.3g} instead of {end['equal_joules']:.3g} J per client"
            assert any(text in note for note in notes) == costs
        assert any("allocation optimal" in note for note in notes) == costs


@dataclass(frozen=True)
class Misnamed(FedAvg):
    """``gradients`` is not called; ``merged`` and ``keeps`` are helpers of its own ``merge``."""

    def gradients(self, grads, params, cohort):
        return 0 * grads

    def merge(self, server, received):
        merged = [self.merged(server, received) for _ in range(self.keeps())]
        return merged[0]

    def merged(self, server, received):
        return super().merge(server, received)

    def send(self, params, state, cohort):
        return super().send(params, state, cohort)  # called, although ``sends`` is inherited

    def keeps(self):
        return 1


def test_a_method_with_almost_the_name_of_an_inherited_one_is_noted():
    [note] = notes_of(f"{__name__}:Misnamed")
    assert note == (
        "algorithm Misnamed has a method gradients, which wirelessfl does not call, and no "
        "gradient of its own: rename it if gradient is meant."
    )


def test_published_settings_have_no_note():
    tried = set()
    for paper in papers().values():
        for study in paper.studies(SCALES[-1]):
            for case in study.cases:
                kind = frozenset(
                    (name, str(value))
                    for name, value in case.settings.items()
                    if name.endswith(("_hz", "_w", "_dbm", "_db", "_mbps", "_m"))
                    or name in ("layout", "uplink", "slowdown")
                )
                if kind not in tried:
                    tried.add(kind)
                    config = case.config(case.seeds[0])
                    network = build_network(config.network, Stream(1), config)
                    assert implausible(config, network) == [], study.name
                    if config.frame.radio and config.network.step_seconds is None:
                        assert network_notes(network, radio=config.uplink.radio) == [], study.name
    assert tried
