"""Wireless channels: path loss, fading, rates, multiple access, over-the-air sums, energy.

Requires only NumPy; outage probabilities and .mat files also SciPy, those of v7.3 also h5py.

A latency study takes a few lines: describe a network, draw its channels from a named stream, and
compute how long a round takes.

>>> from channels import *
>>> network = section_vi_c(cells=4, clients=60, stream=Stream(seed=1))
>>> draw = network.draw(Stream(1, ("channel",)), index=0)
>>> draw.h.shape
(60, 10)
>>> quarter = [238_510 / 4] * 4  # parameters per cell that each client trains and uploads
>>> seconds = global_round_seconds(
...     draw,
...     quarter,
...     edge_rounds=5,
...     model_parameters=238_510,
...     local_steps=20,
...     seconds_per_bit=tdma_seconds_per_bit(draw),
... )
>>> bool(0 < seconds < 10)
True

Equation numbers refer to the HIST paper (Fang, Han, Brinton). Docstrings state shapes and units:
an axis `[clients]` holds the clients of all cells, ordered by cell.
"""

from channels.access import (
    Access,
    EqualBands,
    EqualSlots,
    FixedRate,
    ReadyOrder,
    Simultaneous,
)
from channels.air_sums import AirSum, air_sum, aligned_sum
from channels.aircomp import AirMean, aircomp_mean
from channels.budget import LinkBudget, link_budget
from channels.cells import even_cells
from channels.decibels import dbm_to_watts, noise_power_dbm, watts_to_dbm
from channels.fading import (
    Fading,
    Rayleigh,
    Rician,
    correlate,
    correlation_root,
    exponential_correlation,
    path_loss_db,
)
from channels.failures import outage_probability, packet_error_probability
from channels.interference import Interference
from channels.latency import (
    compute_seconds,
    edge_round_seconds,
    global_round_seconds,
    seconds_per_parameter,
)
from channels.layouts import LAYOUTS, Disc, FileLayout, Hexagonal, Layout, Positions, Ring
from channels.links import (
    aircomp_seconds_per_element,
    airtime_seconds_per_bit,
    ofdma_seconds_per_bit,
    rate_bps,
    snr_linear,
    tdma_seconds_per_bit,
)
from channels.loads import Decision, Load, Rates, Service
from channels.network import ChannelDraw, Network
from channels.notes import Note
from channels.path_loss import (
    PATH_LOSSES,
    InH,
    LogDistance,
    PathLoss,
    Rma,
    Tr36814,
    Uma,
    Umi,
    Variant,
)
from channels.placed import placed_network
from channels.placement import Placement
from channels.precoders import transmit_scales
from channels.presets import section_vi_c, uma, umi
from channels.recorded import Recorded
from channels.shared_band import EndedUpload, SharedBand
from channels.sionna import from_sionna
from channels.stored import load_network, save_network
from channels.streams import Stream

__all__ = [
    "LAYOUTS",
    "PATH_LOSSES",
    "Access",
    "AirMean",
    "AirSum",
    "ChannelDraw",
    "Decision",
    "Disc",
    "EndedUpload",
    "EqualBands",
    "EqualSlots",
    "Fading",
    "FileLayout",
    "FixedRate",
    "Hexagonal",
    "InH",
    "Interference",
    "Layout",
    "LinkBudget",
    "Load",
    "LogDistance",
    "Network",
    "Note",
    "PathLoss",
    "Placement",
    "Positions",
    "Rates",
    "Rayleigh",
    "ReadyOrder",
    "Recorded",
    "Rician",
    "Ring",
    "Rma",
    "Service",
    "SharedBand",
    "Simultaneous",
    "Stream",
    "Tr36814",
    "Uma",
    "Umi",
    "Variant",
    "air_sum",
    "aircomp_mean",
    "aircomp_seconds_per_element",
    "airtime_seconds_per_bit",
    "aligned_sum",
    "compute_seconds",
    "correlate",
    "correlation_root",
    "dbm_to_watts",
    "edge_round_seconds",
    "even_cells",
    "exponential_correlation",
    "from_sionna",
    "global_round_seconds",
    "link_budget",
    "load_network",
    "noise_power_dbm",
    "ofdma_seconds_per_bit",
    "outage_probability",
    "packet_error_probability",
    "path_loss_db",
    "placed_network",
    "rate_bps",
    "save_network",
    "seconds_per_parameter",
    "section_vi_c",
    "snr_linear",
    "tdma_seconds_per_bit",
    "transmit_scales",
    "uma",
    "umi",
    "watts_to_dbm",
]
