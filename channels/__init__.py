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

Networks:
    Network           cells, clients, gains, powers, bands, CPUs; ``draw`` gives channels
    Networks          many of them as arrays, e.g. drops of clients
    placed_network    a network from positions and path loss
    section_vi_c      the network of the HIST paper
    umi, uma          3GPP micro and macro cells
    even_cells        the cell of each client, in cells of equal size
    Placement         positions, and the terms of each client's gain
    Interference      power of a random client of cells with the same band
    ActiveInterference            of the clients that take part
    RandomWaypoint, PositionTrace    how clients move
    Mobility          base class: a rule by which they do
    load_network, save_network    a network in a .npz file

Devices with measured seconds and joules:
    Device            a type of device
    Devices           a table, and which of them each client has
    DEVICES           built-in devices by name, with their sources
    read_devices      a table in a CSV file, FedScale's capacities, or a power meter's log

Positions of cells and clients:
    Layout            base class: a rule that places them
    Positions         what it returns, in metres
    Disc, Hexagonal, Ring         built-in layouts
    FileLayout        positions from a CSV file
    LAYOUTS           layouts by name

Path loss:
    PathLoss          base class: median loss, line of sight, shadowing
    Umi, Uma, Rma, InH            3GPP TR 38.901
    Tr36814           3GPP TR 36.814
    AirToGround       flying base stations, by elevation
    UmaAv             flying clients, 3GPP TR 36.777
    LogDistance       reference loss and exponent
    Variant           a model with or without line of sight, or with shadowing of your own
    path_loss_db      log-distance path loss
    PATH_LOSSES       models by name

Channels and fading:
    ChannelDraw       channels h [clients, antennas] of one block or more, and their SNRs
    Recorded          your own channel matrix, replayed block by block
    from_sionna       a network of channels that Sionna has traced or simulated
    Fading            what a fading model has to define
    Rayleigh, Rician  built-in ones
    Doppler           one of them, correlated in time
    DelayProfile      taps of a power-delay profile: channels that differ over the band
    SelectiveFading   what such a fading model has to define
    over_band         frequency responses to channels of a band
    correlate, correlation_root   correlation of antennas
    exponential_correlation       correlation matrix of neighbouring antennas
    Stream            named random numbers

Link budgets, rates and failures:
    link_budget       SNR, rates and seconds of each client
    LinkBudget        what it returns
    rate_bps          B log2(1 + SNR ||h||^2)
    spectral_efficiency           bit/s/Hz by Shannon, or by modulation and coding
    snr_linear        decibels to a ratio
    dbm_to_watts, watts_to_dbm    powers
    noise_power_dbm   noise power of a receiver
    packet_error_probability      a packet is lost
    outage_probability            a rate exceeds the true channel
    estimation_error  what pilots leave unknown of a channel

Accesses: seconds and joules of a round
    Access            base class: serves a load on a channel draw
    EqualSlots        time division (TDMA)
    ReadyOrder        one client at a time, in the order of readiness
    EqualBands        frequency division (OFDMA)
    Simultaneous      over-the-air computation
    FixedRate         wired links
    Load              cycles, and elements to send, of each client
    Service           what serving it costs: seconds, joules, who arrived
    Decision          bands, powers, clocks or order that an access chose
    Rates             bits per second while some clients send
    SharedBand        uploads that start and end at any time
    EndedUpload       one that has ended

Seconds by formula:
    compute_seconds   local training
    tdma_seconds_per_bit          time division
    ofdma_seconds_per_bit         frequency division
    aircomp_seconds_per_element   over the air
    airtime_seconds_per_bit       seconds in which a client sends: times its power, its energy
    edge_round_seconds            (17)
    global_round_seconds          (18)
    seconds_per_parameter         c_j / E of problem (20)

Sums over the air:
    aircomp_mean      the clients' mean, with noise and errors
    AirMean           what it returns
    transmit_scales   signals at unit gain, by convention of power
    air_sum           precoders that invert channels, gains, noise
    aligned_sum       the same for given precoders
    AirSum            what both return
    wrong_vote_probability        majority votes by energy

Warnings:
    Note              something that is allowed, but probably not meant

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
from channels.delay_profile import DelayProfile
from channels.device_files import DEVICES, read_devices
from channels.devices import Device, Devices
from channels.doppler import Doppler
from channels.fading import (
    Fading,
    Rayleigh,
    Rician,
    SelectiveFading,
    correlate,
    correlation_root,
    exponential_correlation,
    over_band,
    path_loss_db,
)
from channels.failures import outage_probability, packet_error_probability
from channels.interference import ActiveInterference, Interference
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
from channels.mobility import Mobility, PositionTrace, RandomWaypoint
from channels.modulation import spectral_efficiency
from channels.network import ChannelDraw, Network
from channels.networks import Networks
from channels.notes import Note
from channels.path_loss import (
    PATH_LOSSES,
    AirToGround,
    InH,
    LogDistance,
    PathLoss,
    Rma,
    Tr36814,
    Uma,
    UmaAv,
    Umi,
    Variant,
)
from channels.pilots import estimation_error
from channels.placed import placed_network
from channels.placement import Placement
from channels.precoders import transmit_scales
from channels.presets import section_vi_c, uma, umi
from channels.recorded import Recorded
from channels.shared_band import EndedUpload, SharedBand
from channels.sionna import from_sionna
from channels.stored import load_network, save_network
from channels.streams import Stream
from channels.votes import wrong_vote_probability

__all__ = [
    "DEVICES",
    "LAYOUTS",
    "PATH_LOSSES",
    "Access",
    "ActiveInterference",
    "AirMean",
    "AirSum",
    "AirToGround",
    "ChannelDraw",
    "Decision",
    "DelayProfile",
    "Device",
    "Devices",
    "Disc",
    "Doppler",
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
    "Mobility",
    "Network",
    "Networks",
    "Note",
    "PathLoss",
    "Placement",
    "PositionTrace",
    "Positions",
    "RandomWaypoint",
    "Rates",
    "Rayleigh",
    "ReadyOrder",
    "Recorded",
    "Rician",
    "Ring",
    "Rma",
    "SelectiveFading",
    "Service",
    "SharedBand",
    "Simultaneous",
    "Stream",
    "Tr36814",
    "Uma",
    "UmaAv",
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
    "estimation_error",
    "even_cells",
    "exponential_correlation",
    "from_sionna",
    "global_round_seconds",
    "link_budget",
    "load_network",
    "noise_power_dbm",
    "ofdma_seconds_per_bit",
    "outage_probability",
    "over_band",
    "packet_error_probability",
    "path_loss_db",
    "placed_network",
    "rate_bps",
    "read_devices",
    "save_network",
    "seconds_per_parameter",
    "section_vi_c",
    "snr_linear",
    "spectral_efficiency",
    "tdma_seconds_per_bit",
    "transmit_scales",
    "uma",
    "umi",
    "watts_to_dbm",
    "wrong_vote_probability",
]
