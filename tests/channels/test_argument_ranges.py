"""Public functions of channels and solvers refuse values out of range and wrong shapes."""

import math
import re

import numpy as np
import pytest

from channels.validation import shown
from tests.channels.good_arguments import GOOD, SEEDED, function, numbers_of

REMEDY = r"\b([Gg]ive|choose|check|must be|needs|[Ss]ort|patterns of)\b"
ANY_SIGN = {
    "a", "antenna_gain_db", "base_stations_m", "beamformer", "clients_m", "exponent",
    "frequency_hz", "gain_db", "h", "k_factor_db", "path_gain_db", "power_dbm", "precoders",
    "receive", "reference_db", "responses", "rho", "root", "seed", "snr_db", "tau", "updates",
    "waterfall_db", "white", "align_transmitters seed",
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
UNCHECKED = {"correlate root", "correlate white", "over_band responses", "snr_linear snr_db"}
"""Arguments that are converted without a check of their values."""
INFINITE = {"time_limit_seconds", "rounds", "seconds_per_bit", "upload_seconds", *UNCHECKED}
"""Arguments that may be infinite."""
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
    "antennas": [1 << 63],
    "correlation_root antennas": [True, 10**6],
    "clients": [1 << 63],
    "cells": [1 << 63],
    "assign_cells bands": ["best"],
    "bits": [[1e300, 1e5]],
    "certificate": ["best"],
    "convention": ["real"],
    "correlation": [1.0],
    "direction": ["both"],
    "candidates": [True, 1 << 63],
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
        faults = [] if is_in(UNCHECKED, name, argument) else [math.nan]
        faults += [] if is_in(INFINITE, name, argument) else [math.inf]
        faults += [] if is_in(ANY_SIGN, name, argument) else [-1]
        faults += [0] if is_in(POSITIVE, name, argument) else []
        whole = values.dtype.kind == "i" and not is_in(FRACTIONS, name, argument)
        for fault in faults + [1.5] * whole:
            wrong = values.astype(np.result_type(values, type(fault)))
            wrong[(-1,) * wrong.ndim] = fault
            yield argument, wrong if wrong.ndim else fault, fault
    for argument in GOOD[name]:
        if not is_in(UNCHECKED, name, argument):
            for key in (argument, f"{name} {argument}"):
                yield from ((argument, fault, fault) for fault in OUTSIDE.get(key, ()))


@pytest.mark.parametrize("name", GOOD)
def test_values_out_of_range_are_named_with_the_remedy(name):
    """In one line; the value is shown, unless the message tells the shape and type instead."""
    for argument, wrong, fault in outside(name):
        with pytest.raises((TypeError, ValueError), match=rf"\b{argument}\b") as caught:
            function(name)(**GOOD[name] | {argument: wrong})
        message = str(caught.value)
        assert "\n" not in message
        assert re.search(REMEDY, message), message
        if isinstance(fault, list) or argument in {"a", "h", "beamformer", "receive", "updates"}:
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
    "over_band responses",
    "optimize_widths_and_bands bandwidth_hz", "rate_bps bandwidth_hz",
    "select_clients bandwidth_hz", "optimize_mask_sizes seconds_per_unit", "power_dbm", "power_w",
    "Simultaneous power", "snr", "snr_linear snr_db", "water_filling bandwidth",
    "water_filling gain_per_noise", "water_filling power",
}  # fmt: skip
"""Arguments with any number of leading axes."""
OWN_LENGTH = {
    "align_transmitters h", "allocate_requests weights", "bits_per_unit", "cell_of",
    "cycles_per_unit", "distance_m", "from_sionna a", "gain", "gain_per_noise",
    "optimize_beamformer h", "optimize_masks_and_bands snr_hz", "optimize_widths_by_time neurons",
    "over_band responses",
    "seconds_per_unit", "snr", "Simultaneous power", "updates",
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
