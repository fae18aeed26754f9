"""Solvers and link budgets warn of values in other units, where a user calls them."""

import warnings

import numpy as np
import pytest
import torch

import channels
import solvers
from tests.solvers.training_rounds.networks import problem_of

BANDS = {"bits": 1e6, "compute_seconds": 0.1, "snr_hz": [1e7, 1e8], "bandwidth_hz": 1e7}
MASKS = {
    "bits_per_unit": 1e5, "seconds_per_unit": 0.01, "snr_hz": [[1e7, 1e7], [1e6, 1e6]],
    "bandwidth_hz": [1e6, 1e6], "total": 10,
}  # fmt: skip
CLIENTS = {"max_power_watts": 0.1, "max_cpu_hz": 1e9, "kappa": 1e-28}
ENERGY = {
    "bits": [1e6], "cycles": [1e8], "gain_per_noise": [1e8], "bandwidth_hz": 1e6,
    "deadline_seconds": 99.0, **CLIENTS,
}  # fmt: skip
UNITS = {
    "bits_per_unit": 1e4, "cycles_per_unit": 1e6, "gain_per_noise": [[1e9, 1e9], [1e8, 1e8]],
    "bandwidth_hz": [1e6, 1e6], "total": 10, **CLIENTS,
}  # fmt: skip
ROUNDS = UNITS | {"rounds": [[90.0]], "local_steps": [1], "edge_rounds": [1]}
DB = {"snr_hz": [10.0, 20.0]}


def _rounds(**arguments):
    problem, others = problem_of(**arguments)
    return solvers.optimize_rounds(problem, **others)


PROBLEMS = {
    "bands": (solvers.allocate_bandwidth, BANDS, DB, "snr_hz is at most 20 Hz, with which no band"),
    "narrow": (solvers.allocate_bandwidth, BANDS, {"bandwidth_hz": 9}, "for 9 MHz, give 9e+06"),
    "high": (solvers.allocate_bandwidth, BANDS, {"snr_hz": 1e18}, "an SNR of 110 dB in 1e"),
    "in time": (solvers.allocate_bands_in_time, BANDS, DB, "snr_hz is at most 20 Hz"),
    "select": (solvers.select_clients, BANDS | {"count": 1}, DB, "snr_hz is at most 20 Hz"),
    "masks": (solvers.optimize_masks_and_bands, MASKS, {"snr_hz": 30.0}, "snr_hz is at most 30"),
    "widths": (
        solvers.optimize_widths_and_bands, BANDS | {"deadline_seconds": 9.0}, DB,
        "snr_hz is at most 20 Hz",
    ),
    "kappa": (solvers.allocate_energy, ENERGY, {"kappa": 1e28}, "a CPU at 1e+09 Hz takes 1e+55 W"),
    "clock": (solvers.allocate_energy, ENERGY, {"max_cpu_hz": 2e10}, "more than 10 GHz"),
    "GHz": (solvers.allocate_energy, ENERGY, {"max_cpu_hz": 2e1}, "give 2e+10"),
    "power": (solvers.allocate_energy, ENERGY, {"max_power_watts": 23}, "43.6 dBm, more than"),
    "gain": (
        solvers.allocate_energy, ENERGY, {"gain_per_noise": [90.0]},
        "gain_per_noise x power is at most 9 Hz",
    ),
    "masks and energy": (
        solvers.optimize_masks_and_energy, UNITS | {"deadline_seconds": 9.0}, {"kappa": 1e-12},
        "kappa is 1e-12",
    ),
    "rounds": (_rounds, ROUNDS, {"kappa": 1e-12}, "kappa is 1e-12"),
}  # fmt: skip


@pytest.mark.parametrize("case", PROBLEMS)
def test_each_solver_warns_of_values_in_other_units(case):
    """Once, at the line of the call, for arrays and tensors; usual values give none."""
    solve, usual, wrong, text = PROBLEMS[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(**usual)
    for values in (wrong, {name: torch.tensor(value) for name, value in wrong.items()}):
        if case == "rounds" and values is not wrong:  # it takes no tensors
            continue
        with pytest.warns(channels.Note) as caught:
            solve(**usual | values)
        assert text in str(caught[0].message)
        assert caught[0].filename == __file__


def test_the_network_of_a_load_is_looked_at():
    network = channels.Network([0, 0], cpu_hz=2, gain_db=-90.0, bandwidth_hz=10)
    draw = network.draw(channels.Stream(1), 0)
    load = channels.Load(np.full(2, 1e3), 100.0)
    for call in (
        lambda: solvers.allocate_bandwidth(load, draw),
        lambda: channels.link_budget(network),
    ):
        with pytest.warns(channels.Note) as caught:
            call()
        assert [str(w.message)[:9] for w in caught][:2] == ["bandwidth", "cpu_hz is"]


def test_accesses_do_not_warn_in_each_round():
    network = channels.Network([0, 0], cpu_hz=1e9, gain_db=-90.0, bandwidth_hz=10)
    load = channels.Load(np.full(2, 1e6), 100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solvers.OptimalBands().serve(load, network.draw(channels.Stream(1), 0))
