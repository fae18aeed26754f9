"""Public functions of channels and solvers reject wrong types and name the argument."""

import inspect
import math
import re
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch

import channels
import solvers
from channels import Stream, section_vi_c
from channels.arguments import checked
from channels.validation import shown

NETWORK = section_vi_c(cells=2, clients=6, stream=Stream(1))
DRAW = NETWORK.draw(Stream(1))
H = np.arange(1, 13).reshape(3, 4) + 1j
EACH = np.ones(6)
ROUND = {"model_parameters": 20, "local_steps": 3, "seconds_per_bit": EACH}
WIDTHS = {"seconds": [[1.0, 2.0], [1.0, 3.0]], "neurons": [2, 4]}
AIR = {
    "h": H,
    "beamformer": np.ones(4),
    "csi_error": np.zeros(3),
    "phase_error": 0.0,
    "stream": Stream(1),
}
UPLOADS = {
    "bits": [1e5, 1e5],
    "compute_seconds": [0.0, 1.0],
    "snr_hz": [1e7, 1e7],
    "bandwidth_hz": 1e6,
}
LIMITS = {"max_power_watts": 0.1, "max_cpu_hz": 1e9, "kappa": 1e-28}
SIZES = {"total": 4, "cap": None, "lower": 0, "granularity": 1}
CELLS = {
    "cell_of": [0, 0, 1],
    "cpu_hz": [1e9, 2e9, 1e9],
    "bandwidth_hz": [1e6, 2e6],
    "antennas": 2,
    "antenna_correlation": 0.1,
    "cycles_per_step": 1e6,
    "switched_capacitance": [1e-28, 1e-28, 1e-28],
    "fading": channels.Rayleigh(),
}
SEEDED = {
    "Anneal": "starts",
    "Default": "starts",
    "MirrorProx": "starts",
    "Sca": "starts",
    "Sdr": "samples",
}
METHODS = {
    "EqualBands.serve": channels.EqualBands().serve,
    "EqualSlots.serve": channels.EqualSlots().serve,
    "FixedRate.serve": channels.FixedRate(1e6).serve,
    "Network.from_snr": channels.Network.from_snr,
    "Network.with_snr": NETWORK.with_snr,
    **{name: getattr(solvers.beamforming, name) for name in SEEDED},
    **{name: getattr(solvers.mask_sizes, name) for name in ("Cvxpy", "Gurobi", "Highs")},
    "BranchAndBound": solvers.beamforming.BranchAndBound,
    "Network.draw": NETWORK.draw,
    "ReadyOrder.serve": channels.ReadyOrder().serve,
    "Simultaneous.serve": channels.Simultaneous().serve,
    "optimize_sizes_by_time": partial(solvers.optimize_sizes_by_time, lambda sizes: 1.0 * sizes),
    "optimize_widths_by_time": partial(solvers.optimize_widths_by_time, lambda each: 1.0 * each),
}
SERVED = {"load": channels.Load(1e6, 10.0), "draw": DRAW}
GOOD = {name: SERVED for name in METHODS if name.endswith("serve")} | {
    "ChannelDraw": {"network": NETWORK, "h": DRAW.h},
    **{name: {setting: 2, "seed": 0} for name, setting in SEEDED.items()},
    **{name: {"time_limit_seconds": 1.0} for name in ("Cvxpy", "Gurobi", "Highs")},
    "BranchAndBound": {"time_limit_seconds": 1.0, "start": solvers.beamforming.Anneal()},
    "Disc": {"radius_m": 100.0},
    "EnergyWithinDeadline": {"deadline_seconds": 1.0, "late": "error"},
    "FixedRate": {"bps": 1e6, "wait": "slowest"},
    "Hexagonal": {"inter_site_distance_m": 100.0},
    "InH": {"carrier_ghz": 3.5, "base_station_height_m": 3.0},
    "LeastTimeAndEnergy": {"energy_weight": 1.0, "late": "error"},
    "LogDistance": {"exponent": 3.0, "reference_db": 15.0, "reference_m": 1.0, "shadowing_db": 4.0},
    "Load": {
        "cycles": [1e6, 2e6],
        "elements": 10.0,
        "vectors": 1.0,
        "jointly": [10.0, 10.0],
        "weights": [1.0, 1.0],
        "start_seconds": 0.0,
        "bits_per_element": 32.0,
    },
    "Network": {
        "gain_db": -90.0,
        "transmit_power_w": 0.1,
        "noise_dbm_per_hz": -174.0,
        "noise_figure_db": 7.0,
        "interference": None,
    }
    | CELLS,
    "Network.from_snr": {"snr_db": 20.0, "path_gain_db": 0.0} | CELLS,
    "Network.with_snr": {"snr_db": 20.0},
    "Network.draw": {"stream": Stream(1), "index": 0},
    "Rician": {"k_factor_db": 6.0},
    "Ring": {"distance_m": 100.0},
    "Rma": {"carrier_ghz": 3.5, "building_height_m": 5.0, "street_width_m": 20.0},
    "Simultaneous": {"power": [0.5, 1.0]},
    "Stream": {"seed": 1, "names": ()},
    "air_sum": AIR | {"weights": [0.3, 0.3, 0.4], "scales": np.ones(3), "convention": "published"},
    "aligned_sum": {name: value for name, value in AIR.items() if name != "beamformer"}
    | {"receive": np.ones(4), "weights": [0.3, 0.3, 0.4], "precoders": H.sum(-1).conj()},
    "aircomp_mean": AIR
    | {
        "updates": np.ones((3, 5), np.float32),
        "snr_db": [10.0, 9.0, 10.0],
        "convention": "published",
        "elements_per_symbol": 1,
    },
    "aircomp_seconds_per_element": {
        "draw": DRAW,
        "elements_per_symbol": 1,
        "subcarrier_hz": 15e3,
        "symbol_seconds": 1e-5,
    },
    "airtime_seconds_per_bit": {"draw": DRAW, "scheme": "tdma"},
    "compute_seconds": {"network": NETWORK, "steps": 3, "share": 0.5},
    "correlate": {"white": H, "root": np.eye(4)},
    "correlation_root": {"antennas": 3, "rho": 0.5},
    "dbm_to_watts": {"power_dbm": 23.0},
    "edge_round_seconds": {"draw": DRAW, "parameters": [9, 9], "bits_per_parameter": 32} | ROUND,
    "even_cells": {"clients": 4, "cells": 2},
    "exponential_correlation": {"antennas": 3, "rho": 0.5},
    "global_round_seconds": {"draw": DRAW, "parameters": [9, 9], "edge_rounds": 2} | ROUND,
    "link_budget": {"network": NETWORK, "bits": 1e6 * EACH},
    "noise_power_dbm": {
        "bandwidth_hz": 1e6,
        "noise_figure_db": 7.0,
        "noise_dbm_per_hz": -174.0,
    },
    "ofdma_seconds_per_bit": {"draw": DRAW},
    "outage_probability": {
        "gain": [1.0, 2.0],
        "margin_db": 3.0,
        "csi_error_variance": 0.1,
        "antennas": 2,
    },
    "packet_error_probability": {"snr": [1.0, 2.0], "waterfall_db": 0.0},
    "path_loss_db": {
        "distance_m": [9.0],
        "exponent": 3.0,
        "reference_db": 15.0,
        "reference_m": 1.0,
    },
    "placed_network": {
        "layout": channels.Disc(100.0),
        "path_loss": channels.Umi(),
        "cells": 2,
        "clients": 4,
        "stream": Stream(1),
        "cpu_hz": 1e9,
        "antenna_gain_db": 0.0,
        "reuse_factor": 1,
        "bandwidth_hz": 1e6,
    },
    "rate_bps": {"bandwidth_hz": 1e6, "snr": 10.0, "gain": 1.0},
    "seconds_per_parameter": {"draw": DRAW, "bits_per_parameter": 32} | ROUND,
    "section_vi_c": {"cells": 2, "clients": 4, "stream": Stream(1)},
    "snr_linear": {"snr_db": 3.0},
    "tdma_seconds_per_bit": {"draw": DRAW},
    "transmit_scales": {
        "weights": [0.5, 0.5],
        "rms": [1.0, 1.0],
        "snr_db": 9.0,
        "convention": "published",
        "elements_per_symbol": 1,
    },
    "Variant": {"model": channels.Umi(), "line_of_sight": True, "shadowing_db": 4.0},
    "Uma": {"carrier_ghz": 3.5, "client_height_m": 2.0},
    "Umi": {"carrier_ghz": 3.5, "base_station_height_m": 10.0, "client_height_m": 1.5},
    "uma": {"cells": 2, "clients": 4, "stream": Stream(1), "reuse_factor": 1},
    "umi": {"cells": 2, "clients": 4, "stream": Stream(1), "reuse_factor": 3},
    "watts_to_dbm": {"power_w": 0.2},
    "align_transmitters": {
        "h": H,
        "weights": np.ones(3),
        "max_amplitude": 1.0,
        "noise_variance": 1.0,
        "correlation": 0.0,
        "unbiased_sum": False,
        "certificate": "sdr",
        "starts": 1,
        "seed": 0,
        "time_limit_seconds": 1.0,
    },
    "allocate_bands_in_time": UPLOADS,
    "allocate_bandwidth": UPLOADS,
    "allocate_energy": {
        "bits": [1e5, 1e5],
        "cycles": [1e7, 1e7],
        "gain_per_noise": [1e9, 1e9],
        "bandwidth_hz": 1e6,
        "deadline_seconds": 1.0,
    }
    | LIMITS,
    "allocate_requests": {"weights": [1.0, 2.0], "total": 5, "floor": 1},
    "assign_resource_blocks": {
        "packet_error": [[0.1, 0.2], [0.3, 0.4]],
        "weights": [1.0, 2.0],
        "allowed": [[True, False], [True, True]],
        "count": 1,
    },
    "coverage_frontier": WIDTHS,
    "fastest_widths": WIDTHS | {"coverage": 1},
    "optimize_masks_and_bands": {
        "bits_per_unit": [[1e4], [1e4]],
        "seconds_per_unit": [[0.1], [0.1]],
        "snr_hz": [[1e7], [1e7]],
        "bandwidth_hz": 1e6,
        "offset_bits": 0.0,
        "offset_seconds": 0.0,
    }
    | SIZES,
    "optimize_masks_and_energy": {
        "bits_per_unit": [[1e4], [1e4]],
        "cycles_per_unit": [[1e6], [1e6]],
        "gain_per_noise": [[1e9], [1e9]],
        "bandwidth_hz": 1e6,
        "deadline_seconds": 5.0,
        "offset_bits": 0.0,
        "offset_cycles": 0.0,
    }
    | SIZES
    | LIMITS,
    "optimize_widths_and_bands": UPLOADS | {"deadline_seconds": 1.0, "weights": 1.0, "cap": 1.0},
    "schedule_uplink": {
        "ready_seconds": [0.0, 1.0],
        "upload_seconds": [1.0, 1.0],
        "access": "sequential",
    },
    "select_clients": UPLOADS | {"count": 1},
    "optimize_beamformer": {
        "h": H,
        "backend": "mirror_prox",
        "certificate": None,
        "scales": np.ones(3),
    },
    "optimize_mask_sizes": {
        "seconds_per_unit": [1.0, 2.0],
        "total": 5,
        "offset_seconds": 0.0,
        "cap": None,
        "lower": 0,
        "granularity": 1,
        "backend": "exact",
    },
    "optimize_rounds": {
        "rounds": [[9.0, 6.0], [7.0, 5.0]],
        "bits_per_unit": [[1e5], [2e5]],
        "cycles_per_unit": [[1e5], [1e5]],
        "gain_per_noise": [[1e8], [1e8]],
        "max_power_watts": 0.1,
        "max_cpu_hz": 1e9,
        "kappa": 1e-28,
        "bandwidth_hz": [1e6, 1e6],
        "total": 6,
        "local_steps": [2, 5],
        "edge_rounds": [1, 2],
    },
    "optimize_sizes_by_time": SIZES | {"cells": 2, "candidates": 8},
    "optimize_widths_by_time": {
        "neurons": [2, 4],
        "deadline": 2.0,
        "cell_of": [0, 0, 1],
        "candidates": 8,
    },
    "widths_by_deadline": WIDTHS | {"deadline": 2.0},
}
COMPLEX = {"h", "beamformer", "receive", "precoders", "white", "root", "rho", "antenna_correlation"}
WRONG = {"string": "x", "object": object(), "ragged": [[1, 2], [3]], "class": int}


def function(name):
    return METHODS.get(name) or getattr(channels, name, None) or getattr(solvers, name)


def test_every_public_function_is_covered():
    """GOOD lists all public functions that take arguments, except those of files."""
    public = {
        name
        for package in (channels, solvers)
        for name in package.__all__
        if inspect.isfunction(getattr(package, name))
    }
    left = {"available_backends", "load_network", "save_network", "evaluate_rounds"}
    assert public - GOOD.keys() == left


@pytest.mark.parametrize("name", ["optimize_sizes_by_time", "optimize_widths_by_time"])
def test_laws_of_time_are_functions(name):
    for wrong in (None, "x", np.ones(2)):
        with pytest.raises((TypeError, ValueError), match=r"^seconds is .*: give a function of"):
            getattr(solvers, name)(wrong, **GOOD[name])


@pytest.mark.parametrize("name", GOOD)
def test_an_argument_of_the_wrong_type_is_named_in_one_line(name):
    call, good = function(name), GOOD[name]
    call(**good)
    for argument, right in good.items():
        for kind, wrong in WRONG.items():
            with pytest.raises((TypeError, ValueError), match=argument) as caught:
                call(**good | {argument: wrong})
            assert "\n" not in str(caught.value), (argument, kind)
            if isinstance(right, str):
                continue
            if kind == "object":
                assert "object" in str(caught.value), argument


@pytest.mark.parametrize("name", GOOD)
def test_an_imaginary_part_is_never_dropped(name):
    for argument, right in GOOD[name].items():
        values = np.asarray(right)
        if argument in COMPLEX or not values.size or values.dtype.kind not in "if":
            continue
        for array in (np.asarray, torch.tensor, np.ndarray.tolist):
            with pytest.raises((TypeError, ValueError), match=argument) as caught:
                function(name)(**GOOD[name] | {argument: array(np.asarray(values * (1 + 1j)))})
            assert "\n" not in str(caught.value), array


UNREADABLE = {
    "masked": lambda values: np.ma.array(values, mask=np.ones(np.shape(values), bool)),
    "masked in a list": lambda values: [np.ma.array(values, mask=np.ones(np.shape(values), bool))],
    "the masked constant": lambda values: [np.ma.masked],
    "meta": lambda values: torch.tensor(values, device="meta"),
    "meta in a list": lambda values: [torch.ones(2, device="meta")],
    "bfloat16": lambda values: torch.ones(np.shape(values), dtype=torch.bfloat16),
    "sparse": lambda values: torch.tensor(values).reshape(1, -1).to_sparse(),
    "33 axes": lambda values: values.reshape((1,) * (33 - values.ndim) + values.shape),
    "33 axes of a tensor": lambda values: torch.tensor(values).reshape((1,) * 33 + values.shape),
    "objects": lambda values: np.array([object()] * values.size, dtype=object),
    "strings": lambda values: values.astype(str).tolist(),
}


def numbers_of(name):
    """The numeric arguments of a function in GOOD, as arrays."""
    values = {argument: np.asarray(right) for argument, right in GOOD[name].items()}
    return {key: array for key, array in values.items() if array.dtype.kind in "ifc" and array.size}


@pytest.mark.parametrize("name", [*filter(numbers_of, GOOD)])
@pytest.mark.filterwarnings("error")
def test_arrays_that_cannot_be_read_are_refused_in_one_line(name):
    """Masks would be dropped; the others fail somewhere inside of NumPy or torch."""
    for (argument, values), kind in product(numbers_of(name).items(), UNREADABLE):
        with pytest.raises((TypeError, ValueError), match=rf"\b{argument}\b") as caught:
            function(name)(**GOOD[name] | {argument: UNREADABLE[kind](values)})
        assert "\n" not in str(caught.value), (argument, kind)


REMEDY = r"\b([Gg]ive|choose|check|must be|needs|[Ss]ort|patterns of)\b"
ANY_SIGN = {
    "antenna_gain_db", "beamformer", "exponent", "gain_db", "h", "k_factor_db", "path_gain_db",
    "power_dbm", "precoders", "receive", "reference_db", "rho", "seed", "snr_db", "updates",
    "waterfall_db", "white", "root", "align_transmitters seed",
}  # fmt: skip
"""Arguments that may be -1, at least in some functions; all others are at least 0."""
POSITIVE = {
    "antennas", "bits_per_element", "candidates", "cap", "cells", "clients", "count", "coverage",
    "cpu_hz", "cycles_per_step", "deadline", "deadline_seconds", "distance_m",
    "elements_per_symbol", "granularity", "model_parameters", "neurons", "noise_variance",
    "power_w", "reference_m", "reuse_factor", "rounds", "samples", "starts", "subcarrier_hz",
    "symbol_seconds", "time_limit_seconds", "transmit_power_w", "link_budget bits",
    "optimize_mask_sizes seconds_per_unit", "optimize_widths_and_bands bits",
    "optimize_widths_and_bands weights", "optimize_rounds edge_rounds",
    "optimize_rounds local_steps", *(f"{name} bandwidth_hz" for name in GOOD if name != "rate_bps"),
}  # fmt: skip
"""Arguments that are above 0, in all functions or in one."""
INFINITE = {
    "time_limit_seconds", "correlate root", "correlate white", "rounds",
    "seconds_per_bit", "snr_linear snr_db", "upload_seconds",
}  # fmt: skip
"""Arguments that may be infinite, or are converted without a check."""
FRACTIONS = {
    "bits_per_parameter", "compute_seconds steps", "edge_round_seconds local_steps",
    "global_round_seconds local_steps", "lower", "model_parameters", "parameters",
    "seconds_per_parameter local_steps",
}  # fmt: skip
"""Arguments that may have a fraction although GOOD has whole numbers."""
OUTSIDE = {
    "access": ["tdma"],
    "air_sum phase_error": [1e300],
    "air_sum scales": [[1e300] * 3, [1e-300] * 3],
    "aligned_sum phase_error": [1e300],
    "allowed": [[[1, 0], [1, 1]]],
    "antenna_correlation": [1.0, 0.8 + 0.7j],
    "antenna_gain_db": [100],
    "backend": ["cplex"],
    "base_station_height_m": [0.01, 25.0],
    "building_height_m": [0.1],
    "carrier_ghz": [3.5e9, 3500, 0.1],
    "client_height_m": [150.0, 0.1],
    "correlation_root antennas": [True],
    "bits": [[1e300, 1e5]],
    "certificate": ["best"],
    "convention": ["real"],
    "correlation": [1.0],
    "candidates": [True],
    "count": [9, True],
    "coverage": [True],
    "elements_per_symbol": [3],
    "even_cells cells": [99],
    "inter_site_distance_m": [0.5],
    "LogDistance exponent": [37.6],
    "LogDistance reference_db": [-30.0],
    "LogDistance reference_m": [0.0],
    "LogDistance shadowing_db": [99.0],
    "k_factor_db": [101, -101],
    "late": ["wait"],
    "margin_db": [500],
    "Network cell_of": [[]],
    "noise_dbm_per_hz": [4e-21],
    "noise_figure_db": [61],
    "optimize_widths_and_bands cap": [1.5],
    "packet_error": [[[0.1, 1.2], [0.3, 0.4]]],
    "power_dbm": [301],
    "radius_m": [0.5],
    "reuse_factor": [2],
    "Rma carrier_ghz": [60.0],
    "rho": [1.0, -1.0, 0.8 + 0.7j],
    "scheme": ["fdma"],
    "snr_db": [301, -4000],
    "street_width_m": [0.02],
    "total": [1.0, 2**60],
    **{f"{name} seed": [-1, 0.0, None, 1 << 63] for name in SEEDED},
    "align_transmitters seed": [-1],
    "BranchAndBound time_limit_seconds": [None],
    "Ring distance_m": [0.3],
    "Variant line_of_sight": [0],
    "samples": [True, 10**7],
    "starts": [True, 10**7],
    "unbiased_sum": [1],
    "wait": ["median"],
    "waterfall_db": [301],
    "weights": [[]],
}
"""Other values that are refused: above a limit, unknown names, and nothing at all."""


def is_in(table, name, argument):
    return argument in table or f"{name} {argument}" in table


def outside(name):
    """Arguments of a function, each with a value out of its range, and that value alone."""
    for argument, values in numbers_of(name).items():
        faults = (
            []
            if is_in({"correlate root", "correlate white", "snr_linear snr_db"}, name, argument)
            else [math.nan]
        )
        faults += [] if is_in(INFINITE, name, argument) else [math.inf]
        faults += [] if is_in(ANY_SIGN, name, argument) else [-1]
        faults += [0] if is_in(POSITIVE, name, argument) else []
        whole = values.dtype.kind == "i" and not is_in(FRACTIONS, name, argument)
        for fault in faults + [1.5] * whole:
            wrong = values.astype(np.result_type(values, type(fault)))
            wrong[(-1,) * wrong.ndim] = fault
            yield argument, wrong if wrong.ndim else fault, fault
    for argument in GOOD[name]:
        for key in (argument, f"{name} {argument}"):
            for fault in OUTSIDE.get(key, ()):
                if f"{name} {key}" != "snr_linear snr_db":
                    yield argument, fault, fault


@pytest.mark.parametrize("name", GOOD)
def test_values_out_of_range_are_named_with_the_remedy(name):
    """In one line; the value is shown, unless the message tells the shape and type instead."""
    for argument, wrong, fault in outside(name):
        with pytest.raises((TypeError, ValueError), match=rf"\b{argument}\b") as caught:
            function(name)(**GOOD[name] | {argument: wrong})
        message = str(caught.value)
        assert "\n" not in message
        assert re.search(REMEDY, message), message
        if isinstance(fault, list) or argument in {"h", "beamformer", "receive", "updates"}:
            continue
        assert (
            shown(fault) in message
            or f"{fault:g}" in message
            or f"{fault:.1f}" in message
            or "dtype" in message
        ), message


ELEMENTWISE = {
    "align_transmitters max_amplitude", "align_transmitters noise_variance",
    "align_transmitters weights", "allocate_bands_in_time bandwidth_hz",
    "allocate_bandwidth bandwidth_hz", "allocate_energy bandwidth_hz", "deadline_seconds",
    "distance_m", "gain", "noise_power_dbm bandwidth_hz", "optimize_beamformer scales",
    "optimize_widths_and_bands bandwidth_hz", "rate_bps bandwidth_hz",
    "select_clients bandwidth_hz", "optimize_mask_sizes seconds_per_unit", "power_dbm", "power_w",
    "Simultaneous power", "snr", "snr_linear snr_db",
}  # fmt: skip
"""Arguments with any number of leading axes."""
OWN_LENGTH = {
    "align_transmitters h", "allocate_requests weights", "bits_per_unit", "cell_of",
    "cycles_per_unit", "distance_m", "gain", "gain_per_noise", "optimize_beamformer h",
    "optimize_masks_and_bands snr_hz", "optimize_widths_by_time neurons", "seconds_per_unit", "snr",
    "Simultaneous power", "updates",
}  # fmt: skip
"""Arguments whose last axis is free, or of one entry in GOOD."""


@pytest.mark.parametrize("name", GOOD)
def test_shapes_that_do_not_fit_are_named(name):
    """Three axes, and a last axis that is longer than that of the other arguments."""
    for argument, values in numbers_of(name).items():
        wrong = [np.broadcast_to(values.flat[0], (7, 5, 3))]
        if is_in(ELEMENTWISE, name, argument):
            wrong = []
        if values.ndim and not is_in(OWN_LENGTH, name, argument):
            wrong.append(np.concatenate([values, values[..., -1:]], -1))
        for given in wrong:
            with pytest.raises((TypeError, ValueError), match=rf"\b{argument}\b") as caught:
                function(name)(**GOOD[name] | {argument: given})
            assert "\n" not in str(caught.value)
            assert re.search(REMEDY, str(caught.value)), str(caught.value)


def test_tensors_of_other_kinds_are_read():
    """With a gradient, conjugated or negated, of half precision, or with up to 30 axes."""
    h = torch.tensor([[1 + 2j, 3j]], requires_grad=True)
    white = channels.correlate(h.conj(), np.eye(2))
    np.testing.assert_array_equal(white, [[1 - 2j, -3j]])
    assert channels.snr_linear(h.conj().imag) == pytest.approx(10 ** np.array([[-0.2, -0.3]]))
    assert channels.snr_linear(torch.zeros((1,) * 30, dtype=torch.float16)).shape == (1,) * 30
    ready = torch.zeros((*(1,) * 29, 2), dtype=torch.float16)
    assert solvers.schedule_uplink(ready, np.ones((*(1,) * 29, 2))).objective == 2


def test_complex_arguments_are_shown_with_the_remedy():
    with pytest.raises(
        ValueError, match=r"^snr_db is array\(\[1\.\+1\.j\]\): give real numbers\.$"
    ):
        channels.snr_linear(np.array([1 + 1j]))
    with pytest.raises(ValueError, match=r"^distance_m is \[Fraction.* 1j\]: give real numbers"):
        channels.path_loss_db([Fraction(1), 1j])
    assert channels.snr_linear([Fraction(10), 0]).tolist() == [10.0, 1.0]


@pytest.mark.parametrize("name", ["tdma_seconds_per_bit", "section_vi_c", "compute_seconds"])
def test_none_is_named_where_an_object_is_needed(name):
    argument = next(key for key in ("draw", "stream", "network") if key in GOOD[name])
    with pytest.raises(TypeError, match=rf"^{argument} is None: give a channels\.[A-Z]\w+\.$"):
        function(name)(**GOOD[name] | {argument: None})


def test_all_numeric_types_are_accepted():
    @checked()
    def area(sides: "ArrayLike", scale: "float" = 1.0) -> "float":  # noqa: F821
        return float(np.prod([float(side) for side in np.asarray(sides)])) * float(scale)

    for sides in ((2, 3), [np.float32(2), True * 3], torch.tensor([2.0, 3.0]), [Fraction(2), 3]):
        for scale in (1, np.int64(1), np.ones(()), torch.ones(()), True):
            assert area(sides, scale) == 6.0
    with pytest.raises(ValueError, match=r"^scale is array\(\[1\., 1\.\]\): give a number\.$"):
        area([1], np.ones(2))
    with pytest.raises(TypeError, match="positional arguments"):
        area(torch.ones(1), 2, 3)
    with pytest.raises(TypeError, match="multiple values"):
        area([1], 2, scale=2)
    with pytest.raises(TypeError, match="unexpected keyword"):
        area([1], scal=2)


def test_values_are_checked_after_a_valid_one_of_the_type():
    """An invalid list or array is rejected even after a valid one of the same type."""

    @checked()
    def area(sides: "ArrayLike", scale: "float" = 1.0) -> "float":  # noqa: F821
        return float(np.prod(sides)) * float(scale)

    pairs = (([2, 3], [[2], [3, 4]]), (np.ones(2), np.array(["a"])), ((1, 2), (1, object())))
    for right, wrong in pairs:
        for _ in range(2):
            area(right)
            with pytest.raises(TypeError, match=r"^sides is .*give numbers"):
                area(wrong)
    for _ in range(2):
        area(1, np.ones(()))
        with pytest.raises(ValueError, match=r"^scale is .*give a number"):
            area(1, np.ones(2))


def test_long_values_are_shortened_in_messages():
    with pytest.raises(ValueError, match=r"^cells is array") as caught:
        channels.even_cells(4, np.zeros((9, 9)))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 120
