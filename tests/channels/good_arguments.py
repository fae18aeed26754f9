"""Valid arguments of the public functions of channels and solvers, for tests of their checks."""

from functools import partial

import numpy as np

import channels
import solvers
from channels import Stream, section_vi_c
from tests.solvers.training_rounds.networks import solved

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
    "optimize_rounds": solved,
    "optimize_sizes_by_time": partial(solvers.optimize_sizes_by_time, lambda sizes: 1.0 * sizes),
    "optimize_widths_by_time": partial(solvers.optimize_widths_by_time, lambda each: 1.0 * each),
}
SERVED = {"load": channels.Load(1e6, 10.0), "draw": DRAW}
GOOD = {name: SERVED for name in METHODS if name.endswith("serve")} | {
    "ChannelDraw": {"network": NETWORK, "h": DRAW.h},
    **{name: {setting: 2, "seed": 0} for name, setting in SEEDED.items()},
    **{name: {"time_limit_seconds": 1.0} for name in ("Cvxpy", "Gurobi", "Highs")},
    "BranchAndBound": {"time_limit_seconds": 1.0, "start": solvers.beamforming.Anneal()},
    "DelayProfile": {"delay_spread_s": 1e-7, "profile": "tdl-a", "subcarriers": 4},
    "Disc": {"radius_m": 100.0},
    "over_band": {"responses": H},
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
    "from_sionna": {
        "a": 1e-5 * np.ones((1, 1, 4, 3, 1, 2, 2)) * (1 + 1j),
        "tau": 1e-7 * np.ones((1, 1, 3, 2)),
        "cpu_hz": [1e9, 2e9, 1e9],
        "direction": "uplink",
        "frequency_hz": 1e6,
        "subcarrier": None,
        "bandwidth_hz": 1e6,
        "cell_of": [0, 0, 0],
        "clients_m": np.full((3, 3), 50.0),
        "base_stations_m": np.zeros((1, 3)),
    },
    "estimation_error": {"symbols": 10.0, "snr": [1.0, 10.0]},
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
    "spectral_efficiency": {"snr": [1.0, 100.0]},
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
    "wrong_vote_probability": {
        "power_for": [3.0, 1.0],
        "power_against": [1.0, 0.0],
        "antennas": 2,
    },
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
    "assign_cells": {
        "bits": [1e5, 1e5],
        "compute_seconds": [0.0, 1.0],
        "snr_hz": [[1e7, 1e6], [1e7, 1e7]],
        "bandwidth_hz": [1e6, 1e6],
        "capacities": [2, 1],
        "min_clients": [0, 1],
        "bands": "optimal",
        "nodes": 10,
    },
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
    "water_filling": {"gain_per_noise": [1e6, 2e6], "power": 1.0, "bandwidth": 1e6},
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


def function(name):
    return METHODS.get(name) or getattr(channels, name, None) or getattr(solvers, name)


def numbers_of(name):
    """The numeric arguments of a function in GOOD, as arrays."""
    values = {argument: np.asarray(right) for argument, right in GOOD[name].items()}
    return {key: array for key, array in values.items() if array.dtype.kind in "ifc" and array.size}
