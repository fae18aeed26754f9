"""The gate's configurations by name: small runs that together use every choice and setting.

``tests/test_gate.py`` fails if a choice or a setting is missing here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch

from tests.gate import given
from wirelessfl.training.precision import reduced

How = Literal["whole", "resumed", "torchrun", "commands", "design"]
DEFAULTS: dict[str, Any] = {
    "clients": 8,
    "rounds": 3,
    "local_steps": 3,
    "batch_size": 8,
    "device": "cpu",
    # Fixed, so that they depend neither on the machine nor on timing.
    "chunk": 4,
    "replay": "off",
    "threads": 1,
    "workers": 1,
}
"""Default flags of all configurations."""


ROUNDED = "bf16" if reduced(torch.device("cpu")) else "float32"
"""Precision of products that this machine's CPU has besides float32."""


@dataclass(frozen=True)
class Configuration:
    """One run.

    Args:
        algorithm: name of the algorithm.
        flags: settings by flat name, as for ``Config.from_flags``.
        how: ``whole``, uninterrupted; ``resumed``, also stopped halfway and resumed, with equal
            results; ``torchrun``, by two processes that torchrun starts; ``commands``, what
            commands print and export; ``design``, the answer of ``wirelessfl.design``.
        objects: functions that create ``data``, ``model``, ``network`` and ``split`` for
            ``wirelessfl.run``.
        files: function that writes files to a folder and returns the flags that name them.
        commands: command lines, see ``tests.gate.printed``.
        goal: arguments of ``wirelessfl.design``.
    """

    algorithm: str
    flags: Mapping[str, Any]
    how: How = "whole"
    objects: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    files: Callable[[Path], dict[str, Any]] | None = None
    commands: tuple[str, ...] = ()
    goal: Mapping[str, Any] = field(default_factory=dict)

    def flags_in(self, folder: Path) -> dict[str, Any]:
        """The flags, including those of its files, which are written to ``folder``."""
        return {**self.flags, **(self.files(folder) if self.files is not None else {})}


def one(algorithm: str, how: How = "whole", **flags: Any) -> Configuration:
    """A configuration whose objects are ``given_data``, ``given_model``, ``given_network`` and so
    on."""
    objects = {
        name: flags.pop(f"given_{name}")
        for name in ("data", "model", "network", "split")
        if f"given_{name}" in flags
    }
    files = flags.pop("files", None)
    defaults = dict(DEFAULTS)
    if "local_epochs" in flags:  # it replaces the number of steps
        del defaults["local_steps"]
    if "network" in {*objects, *flags} or "split" in objects:  # they define the number of clients
        del defaults["clients"]
    return Configuration(algorithm, defaults | flags, how, objects, files)


STAR = {
    "local-epochs": one("scaffold", how="resumed", local_epochs=0.4, alpha=0.3, split="dirichlet"),
    "fedavg": one("fedavg", momentum=0.9, split="iid", pixels="unit", seed=3, target=0.5),
    "fedavg-m": one("fedavg-m", beta=0.2, uplink="ofdma", split="dirichlet", weighting="samples"),
    "fedprox": one("fedprox", mu=0.1, uplink="fixed", rate_mbps=20.0, split="two-shard"),
    "fedacg": one("fedacg", acceleration=0.8, split="half", pixels="standard", server_lr=0.9),
    "fedadam": one("fedadam", beta1=0.8, split="partial-overlap", uplink="aircomp"),
    "fedyogi": one("fedyogi", beta2=0.95, split="distinct", uplink="fixed"),
    "fedadagrad": one("fedadagrad", eps=0.01, split="natural", given_data=given.points),
    "fedams": one("fedams", lr=0.05, shards=3, local_steps=4),
    "moon": one("moon", tau=0.5, clients_per_round=5),
    "scaffold": one(
        "scaffold", clients_per_round=5, tracking_clients=3, uplink="fixed", wait="slowest"
    ),
    "scaffold-m": one("scaffold-m", uplink="aircomp", convention="physical", split="iid"),
    "local-adam": one("local-adam", vhat="carried", samples_per_client=20, split="iid", reuse=True),
    "fadamgc": one("fadamgc", vhat="carried", uplink="aircomp", clients_per_round=6),
    "fa-nt": one("fa-nt", clients_per_round=6, tracking_clients=4),
    "fa-nt-one-variable": one("fa-nt", variables="one"),
    "poly-steps": one("fedavg", lr_schedule="poly", lr_ratio=0.1, lr_power=0.5),
    "top-k": one(
        "fedavg", downlink_compression="top-k", downlink_compression_keep=0.2, downlink_mbps=30.0
    ),
    "quantisation": one(
        "fadamgc", downlink_compression="quantisation", downlink_compression_bits=4
    ),
    "downlink-sign": one("fedavg", downlink_compression="sign", lr=0.01),
    "uplink-top-k": one(
        "fedavg", uplink_compression="top-k", uplink_compression_keep=0.05, error_feedback=True,
    ),
    "uplink-quantisation": one(
        "scaffold", uplink_compression="quantisation", uplink_compression_bits=2,
    ),
    "radio": one(
        "fedavg", cpu_hz=(5e8, 2e9), cycles_per_step=2e6, snr_db=10.0, path_gain_db=(-5.0, 5.0),
        fading="rician", rician_k_db=3.0, antenna_correlation=0.4, antennas=4, bandwidth_hz=5e6,
        transmit_power_w=0.2, switched_capacitance=2e-28,
    ),
    "cycles-per-flop": one("fedavg", cycles_per_flop=2.0, model="mlp", hidden=(12, 10), rounds=2),
    "validation-fraction": one("fedavg", validation_fraction=0.2, target=0.3),
    "augment": one("fedavg", "resumed", augment="tests.gate.given:noisy", batch_size=20),
    "bf16": one("fadamgc", "resumed", precision=ROUNDED, model="mlp", hidden=(12, 10)),
    "stop-at-target": one("fedavg", target=0.3, stop_at_target=True, rounds=50),
    "patience": one("fedavg", patience=2, min_delta=0.02, rounds=50, keep_best=True),
    "max-seconds": one("fedavg", max_seconds=0.5, rounds=50, step_seconds=0.05, eval_every=2),
}  # fmt: skip

PLACES = {
    "hexagonal-uma": one(
        "hfedavg", cells=3, layout="hexagonal", inter_site_distance_m=300.0, path_loss="uma",
        carrier_ghz=2.0, base_station_height_m=30.0, client_height_m=2.0, reuse_factor=1,
        antenna_gain_db=3.0, noise_figure_db=7.0, noise_dbm_per_hz=-173.0, transmit_power_dbm=23.0,
    ),
    "disc-rma": one(
        "fedavg", layout="disc", radius_m=800.0, path_loss="rma", building_height_m=8.0,
        street_width_m=15.0, line_of_sight="always", shadowing_db=6.0, order="ready",
    ),
    "ring-inh": one(
        "fedavg", layout="ring", distance_m=60.0, path_loss="inh", line_of_sight="never", antennas=2
    ),
    "file-log-distance": one(
        "hfedavg", cells=2, clients=6, layout="file", files=given.positions,
        path_loss="log-distance", exponent=3.0, reference_db=40.0, reference_m=2.0,
        uplink="ofdma", allocation="optimal",
    ),
    "file-watts": one(
        "hfedavg", cells=2, clients=6, layout="file", files=given.disturbed, uplink="ofdma",
        reuse_factor=1, clients_per_round=4,
    ),
    "disc-tr36814": one("fedavg", layout="disc", path_loss="tr36814", uplink="aircomp"),
    "disc-umi": one("fedavg", layout="disc", path_loss="umi", line_of_sight="random"),
    "recorded": one("hfedavg", cells=2, files=given.channels, noise_figure_db=9.0),
    "moving-jakes": one(
        "fedavg", layout="disc", mobility="waypoint", speed_kmh=(30.0, 90.0),
        speed_doppler="jakes", block_seconds=0.5,
    ),
    "moving-ar1": one(
        "hfedavg", cells=2, layout="disc", mobility="waypoint", speed_doppler="ar1",
        uplink="ofdma", reuse_factor=1, interferers="one",
    ),
    "moving-slowly": one(
        "fedavg", layout="disc", path_loss="uma-av", mobility="waypoint", speed_doppler="none"
    ),
    "moving-trace": one(
        "fedavg", layout="disc", mobility="trace", files=given.ways, doppler_hz=5.0,
        doppler_model="ar1",
    ),
    "moving-handover": one(
        "hfedavg", "resumed", cells=3, layout="hexagonal", inter_site_distance_m=150.0,
        mobility="waypoint", speed_kmh=150.0, block_seconds=5.0, handover="strongest",
        clients_per_round=6,
    ),
    "moving-heights": one(
        "hfedavg", cells=2, layout="hexagonal", path_loss="uma-av", mobility="trace",
        files=given.flights, handover="none",
    ),
    "doppler-jakes": one("fedavg", doppler_hz=20.0, doppler_model="jakes", pilot_symbols=4),
    "delay-exponential": one(
        "hfedavg", how="resumed", cells=2, delay_spread_ns=300.0, delay_profile="exponential",
        subcarriers=8, doppler_hz=5.0, rates="mcs",
    ),
    **{
        f"delay-tdl-{letter}": one(
            "fedavg", delay_spread_ns=100.0, delay_profile=f"tdl-{letter}", uplink=uplink
        )
        for letter, uplink in zip("abc", ("ofdma", "tdma", "ofdma"), strict=True)
    },
    "loading": one(
        "hfedavg", cells=2, delay_spread_ns=300.0, subcarriers=8, power_loading="water-filling",
        order="ready",
    ),
    "loading-equal": one("fedavg", delay_spread_ns=300.0, power_loading="equal"),
    "rates-mcs": one("hfedavg", cells=2, rates="mcs"),
    "rates-shannon": one("fedavg", rates="shannon", interference_watts=1e-13),
    "interferers-active": one(
        "hfedavg", cells=3, layout="hexagonal", reuse_factor=1, interferers="active",
        association="strongest",
    ),
    "association-placed": one("hfedavg", cells=2, layout="hexagonal", association="placed"),
    "association-nearest": one("hfedavg", cells=2, layout="hexagonal", association="nearest"),
    "association-fastest": one("hfedavg", cells=2, layout="hexagonal", association="fastest"),
    **{
        f"air-to-ground-{where}": one(
            "fedavg", layout="disc", path_loss="air-to-ground", surroundings=where
        )
        for where in ("suburban", "urban", "dense-urban", "highrise")
    },
    "devices": one("fedavg", devices="mixed", uplink="fixed"),
    "devices-batteries": one(
        "fedavg", files=given.phones, clients_per_round=4, rounds=8, battery_joules="devices",
        client_joules="devices", recharge="constant", recharge_watts=0.02,
    ),
    "votes": one("fedavg", uplink="aircomp", convention="majority"),
    "votes-late": one(
        "hfedavg", cells=2, uplink="aircomp", convention="one-bit", time_offset=0.2
    ),
    "own-network": one("hfedavg", network="tests.gate.given:network_of"),
}  # fmt: skip

HIERARCHY = {
    "hfedavg": one("hfedavg", cells=3, split="cell-iid", backhaul_mbps=100.0, coherence="round"),
    "hist": one("hist", cells=3, edge_rounds=2, weighting="samples", split="dirichlet"),
    "hist-optimized": one("hist", cells=3, mask_sizes="optimized", size_cap=1.2, uplink="ofdma"),
    "hist-fixed": one(
        "hist", cells=3, mask_sizes="fixed", mask_shares=(0.5, 0.3, 0.2), hidden=(32,)
    ),
    "hist-all-layers": one("hist", cells=2, model="mlp", hidden=(24, 16), partition="all"),
    "hist-overlap": one("hist", cells=2, mask_overlap=0.5, hidden=(32,), dropout=0.2),
    "hist-local-biases": one("hist", cells=2, hidden_biases="local", clients_per_round=6),
    "hist-lenet5": one(
        "hist", cells=2, rounds=2, model="lenet5", layers="fc1,fc2", given_data=given.small_images
    ),
    "hist-scaled": one("hist", cells=3, split="cell-shards", submodel_scale="width", dropout=0.1),
    "hist-given-network": one("hist", given_network=given.uneven_network),
}

AIR = {
    f"aircomp-{beamformer}": one("hist", cells=2, rounds=2, uplink="aircomp", beamformer=beamformer)
    for beamformer in ("anneal", "mirror_prox", "sca", "sdr", "random")
} | {
    "aircomp-imperfect": one(
        "hist", cells=2, uplink="aircomp", convention="physical", elements_per_symbol=2,
        csi_error=0.05, phase_error_deg=5.0, beamformer_starts=3,
    ),
    "aircomp-published-errors": one(
        "hfedavg", cells=2, uplink="aircomp", csi_error=0.05, subcarrier_hz=3e4,
        symbol_seconds=3.6e-5, coherence="round", clients_per_round=5,
    ),
    "aircomp-submodels": one(
        "ra-fed", uplink="aircomp", capacities=(1.0, 0.5), hidden=(24,), lr=0.01
    ),
    "aircomp-least-error": one(
        "hist", cells=2, rounds=2, uplink="aircomp", convention="mmse", correlation=0.3,
        unbiased_sum=True, snr_db=-10.0, beamformer_starts=2,
    ),
    "aircomp-threshold": one(
        "hfedavg", cells=2, uplink="aircomp", convention="physical", threshold=0.8, antennas=1
    ),
}  # fmt: skip

FEWER = {"clients_per_round": 4}
DRAINED: dict[str, Any] = {
    "battery_joules": (1e-3, 2e-3), "cycles_per_step": 1e6, "cpu_hz": (1e9, 3e9), "rounds": 12,
}  # fmt: skip
DECIDED = {
    "deadline": one("hfedavg", cells=2, uplink="ofdma", round_deadline=0.5, backhaul_mbps=100.0),
    "deadline-lost": one(
        "fedavg", uplink="ofdma", round_deadline=0.02, late="lost", energy_weight=1.0
    ),
    "cutoff": one("hfedavg", cells=2, edge_rounds=2, cutoff_seconds=0.04, path_gain_db=(-9, 9)),
    "select-soonest": one("hfedavg", **FEWER, cells=2, select="soonest", order="ready"),
    "select-best-channel": one("fedavg", **FEWER, select="best-channel", uplink="ofdma"),
    "select-round-robin": one("fedavg", **FEWER, select="round-robin", client_joules=0.02),
    "select-age": one(
        "fedavg", **FEWER, select="age", failures="waterfall", waterfall_db=5.0, snr_db=-5.0
    ),
    "select-power-of-choice": one(
        "hfedavg", **FEWER, cells=2, select="power-of-choice", loss_candidates=3, loss_samples=10
    ),
    "availability": one(
        "scaffold", files=given.available, rounds=7, availability_unit="rounds",
        availability_period=3.0,
    ),
    "battery-harvest": one(
        "fedavg", how="resumed", **FEWER, **DRAINED, recharge="harvest", packet_joules=4e-4,
        packets_per_second=30.0,
    ),
    "battery-constant": one(
        "hfedavg", **FEWER, **DRAINED, cells=2, edge_rounds=1, recharge="constant",
        recharge_watts=0.02, on_empty="drop",
    ),
    "battery-trace": one(
        "scaffold", **FEWER, **DRAINED, recharge="trace", files=given.power, recharge_period=0.2,
        client_joules=(2e-3, 9e-3),
    ),
    "select-ucb": one(
        "hfedavg", **FEWER, cells=2, select="ucb", ucb_bonus=0.5, rounds=6, cpu_hz=(1e8, 2e9),
        cycles_per_step=1e7,
    ),
    "select-utility": one(
        "fedavg", how="resumed", **FEWER, select="utility", explore=0.5, explore_decay=0.9,
        explore_min=0.1, preferred_quantile=0.3, slow_penalty=1.0, utility_samples=20, rounds=6,
        cpu_hz=(1e8, 2e9), cycles_per_step=1e7, weighting="samples",
    ),
    "failures-waterfall": one(
        "scaffold", failures="waterfall", on_failure="repeat", snr_db=-10.0, uplink="ofdma",
        allocation="optimal",
    ),
    "failures-outage": one(
        "hist", cells=2, edge_rounds=2, failures="outage", csi_error=0.2, margin_db=0.5
    ),
}  # fmt: skip

# Algorithms inside cells. HIST partitions the model, so it does not accept those with submodels.
LOCAL = (
    *("fa-nt", "fadamgc", "fedacg", "fedadagrad", "fedadam", "fedams", "fedavg-m", "fedprox"),
    *("fedyogi", "local-adam", "moon", "scaffold", "scaffold-m"),
)
OF_SUBMODELS = ("fedavg-small", "fedrolex", "heterofl", "ra-fed", "ram-fed")
TWO_CELLS = {"cells": 2, "clients": 6, "rounds": 2, "edge_rounds": 2, "local_steps": 2}
INSIDE = {
    **{f"hist-{name}": one("hist", local=name, **TWO_CELLS) for name in LOCAL},
    **{f"hfedavg-{name}": one("hfedavg", local=name, **TWO_CELLS) for name in LOCAL},
    **{
        f"hfedavg-{name}": one("hfedavg", local=name, lr=0.01, **TWO_CELLS) for name in OF_SUBMODELS
    },
}

WIDE = {"model": "mlp", "hidden": (24, 16), "lr": 0.1}
SUBMODELS = {
    "heterofl": one("heterofl", **WIDE, capacities=(1.0, 0.5, 0.25)),
    "fedrolex": one("fedrolex", **WIDE, clients_per_round=5, weighting="samples"),
    "fedavg-small": one("fedavg-small", **WIDE, capacities=(1.0, 0.5)),
    "ra-fed-widths": one("ra-fed", **WIDE, widths=(1.0, 0.5, 0.25, 0.5) * 2),
    "ra-fed-ordered": one("ra-fed", **WIDE, masks="ordered", padding=0.0),
    "ra-fed-rolling": one("ra-fed", **WIDE, masks="rolling", padding=0.5),
    "ra-fed-random": one("ra-fed", **WIDE, masks="random", executor="loop"),
    "ra-fed-static": one("ra-fed", **WIDE, masks="static", budget="bytes", capacities=(0.5, 0.2)),
    "ra-fed-covered": one("ra-fed", **WIDE, masks="covered", min_coverage=1, budget="flops"),
    "ra-fed-crossed": one(
        "ra-fed", **WIDE, masks="crossed", capacities=(0.5,), min_coverage=1, coverage_of="weights",
        clients=8, submodel_scale="width", padding=0.5,
    ),
    "ra-fed-partition": one("ra-fed", **WIDE, masks="partition", capacities=(0.25,)),
    "ra-fed-overlap": one(
        "ra-fed", **WIDE, masks="partition", capacities=(0.25,), mask_overlap=0.5
    ),
    "ra-fed-deadline": one(
        "ra-fed", **WIDE, masks="covered", budget="deadline", deadline=0.01, uplink="ofdma"
    ),
    "ra-fed-fastest": one("ra-fed", **WIDE, masks="covered", budget="fastest", min_coverage=2),
    "uplink-sign": one("ra-fed", **WIDE, uplink_compression="sign", error_feedback=True),
    "ra-fed-top-k": one("ra-fed", **WIDE, downlink_compression="top-k"),
    "ram-fed": one("ram-fed", **WIDE, clients_per_round=5, client_states="memory"),
    "ram-fed-fastest": one("ram-fed", **WIDE, budget="fastest", min_coverage=3, masks="covered"),
    "ram-fed-lenet5": one(
        "ram-fed", rounds=2, model="lenet5", given_data=given.small_images,
        downlink_compression="quantisation", lr=0.01,
    ),
}  # fmt: skip

# Submodels of algorithms that bring none.
COVERED = {"assigner": "covered", **WIDE}
PARTED = {"assigner": "partition", "cells": 2, "rounds": 2}
ASSIGNERS = {
    "assigner-covered": one("fadamgc", **COVERED, min_coverage=1, budget="flops"),
    "assigner-deadline": one("fedprox", **COVERED, budget="deadline", deadline=0.01),
    "assigner-fastest": one("fedacg", **COVERED, budget="fastest", min_coverage=2),
    "assigner-nested": one("scaffold", **WIDE, assigner="nested", submodel_scale="width"),
    "assigner-rolling": one("fedadam", **WIDE, assigner="rolling", widths=(1.0, 0.5) * 4),
    "assigner-random": one("moon", **WIDE, assigner="random", capacities=(0.5, 0.25)),
    "assigner-static": one(
        "fedbuff", **WIDE, assigner="static", requests=3, buffer=2, budget="bytes"
    ),
    "assigner-crossed": one(
        "hfedavg", **WIDE, assigner="crossed", local="fedprox", cells=2, capacities=(0.5,),
        min_coverage=1, coverage_of="weights",
    ),
    "assigner-smallest": one("fedavg-m", **WIDE, assigner="smallest", capacities=(1.0, 0.5)),
    "assigner-partition": one(
        "hfedavg", **PARTED, mask_sizes="fixed", mask_shares=(0.6, 0.4), hidden_biases="local",
        partition="all", model="mlp", hidden=(24, 16), local="fadamgc",
    ),
    "assigner-overlap": one("hfedavg", **PARTED, mask_overlap=0.5),
    "assigner-optimized": one("hfedavg", **PARTED, mask_sizes="optimized", size_cap=1.2),
}  # fmt: skip

MODELS = {
    "linear": one("fedavg", model="linear", split="noniid"),
    "cifar-cnn": one("fedavg", model="cifar-cnn", given_data=given.colour_images, rounds=1),
    "fedast-cnn": one("fedavg", model="fedast-cnn", given_data=given.colour_images, rounds=1),
    "gn-cnn": one("fedavg", model="gn-cnn", given_data=given.small_images, rounds=1),
    "resnet18": one(
        "fedavg", model="resnet18", given_data=given.colour_images, clients=2, chunk=1, rounds=1,
        local_steps=1, batch_size=2, norm="group",
    ),
    "resnet34": one(
        "fedavg", model="resnet34", given_data=given.colour_images, clients=2, chunk=1, rounds=1,
        local_steps=1, batch_size=2, norm="group", eval_samples=8,
    ),
    "lstm": one("fedavg", model="lstm", hidden=(6, 5), given_data=given.letters),
    "lstm-shakespeare": one(
        "fedavg", model="lstm", hidden=(6,), dataset="shakespeare", split="natural", clients=3,
        rounds=1, files=given.plays,
    ),
    "text-mean": one(
        "fedavg", model="text-mean", embedding=6, hidden=(5,), dropout=0.3, given_data=given.tokens
    ),
    "gpt2-lora": one(
        "fedavg", model="gpt2-lora", lora_rank=2, lora_alpha=4.0, clients=4, rounds=2,
        given_data=given.tokens, files=given.tiny_gpt2,
    ),
    "gpt2-lora-tiny": one(
        "fadamgc", model="gpt2-lora-tiny", lora_rank=2, clients=4, rounds=2, given_data=given.tokens
    ),
    "given-model": one("scaffold", given_model=given.residual, given_data=given.points),
    "own-split": one("fedavg", "resumed", given_split=given.lists, given_data=given.points),
    "given-batch-norm": one("fedavg", given_model=given.batch_norm, given_data=given.points),
}  # fmt: skip

EXECUTORS = {
    "stacked": one("fedavg", executor="stacked", dropout=0.3, chunk=3),
    "vmap": one("fedavg", executor="vmap", dropout=0.3, chunk=3),
    "vmap-replay": one("fedavg", executor="vmap", dropout=0.3, chunk=3, replay="on"),
    "loop": one("fedavg", executor="loop", dropout=0.3),
    "two-threads": one("fedavg", threads=2, batch_size=50, chunk=8),
    "two-workers": one("hist", cells=2, workers=2, chunk=2, rounds=2, mask_sizes="optimized"),
    "disk-states": one("scaffold", client_states="disk", clients_per_round=5),
    "torchrun-hist": one("hist", "torchrun", cells=3, clients=7, uplink="aircomp", dropout=0.2),
    "torchrun-ram-fed": one(
        "hfedavg", "torchrun", local="ram-fed", cells=2, clients=7, clients_per_round=5,
        capacities=(1.0, 0.5, 0.2), weighting="samples", lr=0.01,
    ),
}  # fmt: skip

LABELS = {"sessions": 3, "split": "iid", "rounds": 2}
ARRIVALS = {
    "presence": "arrivals", "arrival_rate": 2.0, "mean_stay": 2.0, "presence_unit": "rounds",
    "split": "iid", "sessions": 3, "rounds": 3,
}  # fmt: skip
SESSIONS = {
    "previous": one("fedavg", **LABELS, warm_start="previous", overlap=0.4, eval_every=2),
    "fresh": one("fedavg", **LABELS, warm_start="fresh", shared_labels="both", overlap=0.4),
    "average": one("fedavg", **LABELS | {"sessions": 5}, warm_start="average", pilot_sessions=2),
    "kept-momentum": one("fedacg", **LABELS, server_momentum="keep"),
    "continuous": one("fedavg", **LABELS, warm_start="continuous", tested_labels="all"),
    "continuous-logits": one(
        "fedavg", **LABELS, warm_start="continuous", distillation="logits", kl_weight=0.5
    ),
    "proposed": one(
        "fedavg", **LABELS | {"sessions": 5}, warm_start="proposed", trial_rounds=2,
        similarity_scale=5.0, history=2, history_keep="diverse", unseen_labels=2,
    ),
    "random-pilot": one(
        "scaffold", **LABELS, warm_start="random-pilot", similarity="inner_product", history=2
    ),
    "plain-two-norm": one(
        "hist", **LABELS, warm_start="proposed", similarity="plain_two_norm", cells=2,
        edge_rounds=2, uplink="aircomp", lr_schedule="poly", eval_every=2, eval_first=1,
    ),
    "arrivals": one("fadamgc", **ARRIVALS, initially_present=5),
    "arrivals-seconds": one(
        "fedavg", **ARRIVALS | {"presence_unit": "seconds", "arrival_rate": 8e2, "mean_stay": 5e-3}
    ),
    "trace": one(
        "hist", sessions=3, cells=2, edge_rounds=2, split="iid", presence="trace",
        presence_unit="rounds", files=given.stays, mask_sizes="optimized", warm_start="proposed",
    ),
    "sessions-ram-fed": one("ram-fed", **ARRIVALS, **WIDE, masks="covered"),
}  # fmt: skip

TASKS: dict[str, Any] = {
    "task": (
        "digits,model=fcnn,hidden=20,step_seconds=0.1",
        "digits,model=mlp,hidden=12,10,lr=0.05,step_seconds=0.3,name=slow",
    ),
    "samples_per_client": 12,
    "split": "dirichlet",
    "reuse": True,
    "rounds": 8,
    "eval_every": 2,
}
EXPONENTIAL = {"delays": "shifted-exponential"}
BUFFERED = TASKS | {"requests": 6, "buffer": 2}
ONE_TASK = {"requests": 6, "step_seconds": 0.1, "rounds": 8, "eval_every": 2}
SEVERAL_TASKS = {
    "fedast-static": one(
        "fedast", **BUFFERED, uplink="ofdma", downlink_mbps=50.0, weighting="samples",
        delays="wireless",
    ),
    "fedast-dynamic": one(
        "fedast", **BUFFERED, **EXPONENTIAL, option="D", floor=2, period=0.3, spread_updates=4,
        drop_out=0.2, busy_clients=4, weight_decay=1e-3,
    ),
    "fedast-published-times": one(
        "fedast", **EXPONENTIAL, requests=6, given_data=given.called_mnist, dataset="mnist",
        delay_scale=0.3, max_seconds=3.0, eval_seconds=1.0, alpha=0.2, min_samples=2,
        split="dirichlet",
    ),
    "fedast-nobuffer": one("fedast-nobuffer", **TASKS, **EXPONENTIAL, requests=6),
    "fedast-fixed-vmap": one("fedast", **BUFFERED, uplink="fixed", executor="vmap"),
    "fedbuff": one("fedbuff", **ONE_TASK, buffer=3, staleness_exponent=0.7),
    "fedasync": one("fedasync", **ONE_TASK, **EXPONENTIAL, server_lr=0.5),
    "sync-st": one("sync-st", **TASKS, first=2, drop_out=0.1, availability=0.8),
    "sync-bayes-st": one("sync-bayes-st", **TASKS, candidates=5, fairness=2.0, first=2),
    "sync-ucb-st": one(
        "sync-ucb-st", **TASKS, **EXPONENTIAL, discount=0.8, exploration=0.2, first=2
    ),
}  # fmt: skip

# A checkpoint after each round, so that a run stopped halfway has work left when it resumes.
OFTEN = {"checkpoint_seconds": 0.0}
RESUMED = {
    "resumed-scaffold": one(
        "scaffold", "resumed", **OFTEN, rounds=4, clients_per_round=5, tracking_clients=3,
        client_states="disk",
    ),
    "resumed-hist": one(
        "hist", "resumed", **OFTEN, cells=2, uplink="aircomp", mask_sizes="optimized", dropout=0.2
    ),
    "resumed-ram-fed": one("ram-fed", "resumed", **OFTEN, **WIDE, rounds=4, clients_per_round=5),
    "resumed-sessions": one(
        "fedavg", "resumed", **OFTEN, **ARRIVALS, momentum=0.5, warm_start="proposed"
    ),
    "resumed-fedast": one(
        "fedast", "resumed", **OFTEN, **BUFFERED, **EXPONENTIAL, option="D", floor=2, drop_out=0.2
    ),
    "resumed-client-log": one("hfedavg", "resumed", **OFTEN, cells=2, client_log=True),
    "resumed-sync-st": one("sync-st", "resumed", **OFTEN, **TASKS, first=2),
}  # fmt: skip

# One algorithm for each kind of state under each schedule; almost all are stopped halfway.
ASYNCHRONOUS = OFTEN | ONE_TASK | {"schedule": "buffered", "buffer": 2}
OVER_THE_AIR = {"uplink": "aircomp", "drop_out": 0.1}
SLOW_CELLS = OFTEN | {"schedule": "buffered", "rounds": 6, "slowdown": 3.0, "edge_rounds": 2}
SCHEDULES = {
    "buffered-scaffold": one("scaffold", "resumed", **ASYNCHRONOUS, drop_out=0.2),
    "buffered-stale": one(
        "scaffold", "resumed", **ASYNCHRONOUS, max_staleness=1, update_weights="version"
    ),
    "buffered-available": one(
        "scaffold", "resumed", **ASYNCHRONOUS, files=given.shifts, availability_period=2.0,
        busy_clients=2,
    ),
    "cells-batteries": one(
        "hist", "resumed", **SLOW_CELLS, cells=4, buffer=2, **{
            key: value for key, value in DRAINED.items() if key != "rounds"
        }, recharge="harvest", packet_joules=4e-4, packets_per_second=30.0,
    ),
    "cells-available": one(
        "hist", "resumed", **SLOW_CELLS, cells=4, buffer=2, files=given.shifts,
        availability_unit="rounds", availability_period=2.0,
    ),
    "buffered-fadamgc-air": one("fadamgc", "resumed", **ASYNCHRONOUS, **OVER_THE_AIR),
    "buffered-ram-fed": one(
        "ram-fed", "resumed", **ASYNCHRONOUS, **WIDE, masks="covered", busy_clients=4
    ),
    "buffered-heterofl-air": one("heterofl", "resumed", **ASYNCHRONOUS, **OVER_THE_AIR, **WIDE),
    "buffered-deadline": one(
        "ra-fed", "resumed", **ASYNCHRONOUS, **WIDE, budget="deadline", deadline=0.3,
        masks="covered", uplink="ofdma", bandwidth_hz=2e4, path_gain_db=(-20.0, 5.0),
    ),
    "simultaneous-deadline": one(
        "heterofl", "resumed", **OFTEN, **WIDE, **OVER_THE_AIR, schedule="simultaneous", rounds=4,
        budget="deadline", deadline=0.004, cpu_hz=(3e8, 2e9),
    ),
    "cells-cloud-lr": one("hfedavg", "resumed", **SLOW_CELLS, cells=4, buffer=2, cloud_lr=0.5),
    "buffered-top-k": one(
        "fadamgc", "resumed", **ASYNCHRONOUS, downlink_compression="top-k", downlink_mbps=2.0
    ),
    "buffered-fedadam-poly": one("fedadam", **ASYNCHRONOUS, lr_schedule="poly", lr_ratio=0.1),
    "buffered-tasks-air": one(
        "fedast", "resumed", **OFTEN, **OVER_THE_AIR, **TASKS | {
            "task": (*TASKS["task"], "digits,algorithm=fadamgc,name=third,lr=0.01,requests=2"),
        }, requests=4, buffer=2,
    ),
    "simultaneous-tasks": one(
        "scaffold", "resumed", **OFTEN, **TASKS | {
            "task": (
                *TASKS["task"], "digits,algorithm=heterofl,capacities=0.5,1,lr=0.01,name=third"
            ),
        }, schedule="simultaneous", drop_out=0.1,
    ),
    "simultaneous-air": one(
        "fedprox", "resumed", **OFTEN, **OVER_THE_AIR, schedule="simultaneous", first=4, rounds=4
    ),
    "cells-hist": one("hist", "resumed", **SLOW_CELLS, cells=4, buffer=2, uplink="aircomp"),
    "cells-hfedavg": one(
        "hfedavg", "resumed", **SLOW_CELLS, cells=4, buffer=1, local="scaffold",
        client_states="disk", eval_seconds=0.005,
    ),
}  # fmt: skip

LOSSES = {
    "loss-smoothing": one(
        "fedavg", label_smoothing=0.1, metric="macro-f1,class-accuracy,worst-clients",
        monitor="macro_f1", target=0.5,
    ),
    "loss-mse": one("scaffold", given_data=given.reals, split="iid", loss="mse", metric="r2"),
    "loss-huber": one(
        "fedprox", given_data=given.reals, split="iid", loss="huber", huber_delta=0.5,
        metric="rmse,mae", executor="vmap",
    ),
    "loss-l1": one("fedavg", given_data=given.reals, split="iid", loss="l1", executor="loop"),
    "loss-binary": one(
        "moon", given_data=given.several, split="iid", loss="binary-cross-entropy",
        metric="macro-f1", validation_fraction=0.2,
    ),
}  # fmt: skip


def asked(algorithm: str, *commands: str, **flags: Any) -> Configuration:
    """A configuration of which the answers of commands are compared."""
    return replace(one(algorithm, "commands", **flags), commands=commands)


def design(algorithm: str, goal: Mapping[str, Any], **flags: Any) -> Configuration:
    """A configuration that is designed for a goal, on few candidates."""
    few = {"local_steps": [2, 5, 12], "edge_rounds": [1, 3], "draws": 3}
    return replace(one(algorithm, "design", hidden=(8,), **flags), goal=few | goal)


TRAINED = "run --config CONFIG --out OUT/run --json"
ON_THE_MAP = {
    "layout": "hexagonal", "inter_site_distance_m": 500.0, "path_loss": "umi", "antennas": 4,
    "transmit_power_dbm": 20.0, "bandwidth_hz": 5e6, "downlink_mbps": 100.0,
    "backhaul_mbps": 1000.0,
}  # fmt: skip
ANSWERS = {
    "price-star": asked(
        "fedavg", TRAINED, "price OUT/run --uplink tdma --order ready --target 0.2 --json",
        "price OUT/run --bandwidth-hz 2e6", uplink="ofdma", allocation="optimal",
    ),
    "price-hist": asked(
        "hist", TRAINED, "price OUT/run --uplink ofdma --energy-weight 10 --json", cells=3,
        edge_rounds=2, hidden=(12,),
    ),
    "price-map": asked(
        "hfedavg", TRAINED, "price OUT/run --transmit-power-dbm 10 --cpu-hz 2e8,9e8 --json",
        cells=2, **ON_THE_MAP,
    ),
    "plan-map": asked(
        "hist", "plan --config CONFIG --air-joules --rounds 2 --json",
        "plan --config CONFIG --rounds 2", cells=2, **ON_THE_MAP,
    ),
    "plan-star": asked(
        "scaffold", "plan --config CONFIG --json", clients_per_round=4, downlink_compression="top-k"
    ),
    "plan-widths": asked(
        "ra-fed", "plan --config CONFIG --json", capacities=(1.0, 0.5), hidden=(24,)
    ),
    "design-star": design("fedavg", {"target": 0.7, "clients": [4, 8]}),
    "design-hist": design(
        "hist", {"target": 0.7, "objective": (1.0, 30.0), "among": ["hist", "hfedavg"]}, cells=2,
        clients=4,
    ),
    "design-air": design(
        "hfedavg", {"target": 0.7, "uplinks": ["tdma", "aircomp"]}, cells=2, uplink="aircomp",
        snr_db=10.0,
    ),
    "design-budget": design("hfedavg", {"max_seconds": 0.1}, cells=2, backhaul_mbps=5.0),
    "design-joules": design(
        "hfedavg", {"target": 0.7, "objective": "joules", "max_seconds": 9.0}, cells=2
    ),
    "design-quantile": design(
        "hfedavg", {"target": 0.7, "statistic": 0.9, "max_client_joules": 5.0}, cells=2,
        **ON_THE_MAP,
    ),
    "sweep": asked(
        "hist", "sweep hist,hfedavg --config CONFIG --uplink tdma,ofdma --seed 1,2 --out OUT/runs "
        "--json", "table OUT/runs --by algorithm,uplink --target 0.1", cells=2, hidden=(8,),
    ),
    "export": asked(
        "fedavg", TRAINED, "export OUT/run -o OUT/rows.csv", "export OUT/run -o OUT/w.safetensors"
    ),
}  # fmt: skip

CONFIGURATIONS: dict[str, Configuration] = {
    **STAR, **PLACES, **HIERARCHY, **AIR, **DECIDED, **INSIDE, **SUBMODELS, **ASSIGNERS, **MODELS,
    **EXECUTORS, **SESSIONS, **SEVERAL_TASKS, **RESUMED, **SCHEDULES, **LOSSES, **ANSWERS,
}  # fmt: skip
