"""What other frameworks and papers call settings, for hints after an unknown name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "lr": (
        "learning_rate",
        "client_lr",
        "local_lr",
        "eta",
        "step_size",
        "stepsize",
        "gamma",
        "local_learning_rate",
    ),
    "clients": (
        "num_clients",
        "n_clients",
        "nclients",
        "users",
        "num_users",
        "num_supernodes",
        "num_partitions",
    ),
    "cells": ("num_cells", "n_cells", "edge_servers", "num_edges", "base_stations"),
    "rounds": (
        "n_rounds",
        "num_rounds",
        "global_rounds",
        "communication_rounds",
        "comm_rounds",
        "global_epochs",
        "num_server_rounds",
        "iterations",
        "global_round",
        "central_num_iterations",
    ),
    "local_epochs": ("epochs", "local_ep", "n_epochs", "num_epochs", "local_num_epochs"),
    "local_steps": (
        "epochs",
        "local_ep",
        "local_epochs",
        "n_epochs",
        "num_epochs",
        "steps",
        "local_iterations",
        "local_iters",
        "num_local_steps",
        "local_num_steps",
    ),
    "batch_size": (
        "batch",
        "bs",
        "local_bs",
        "batchsize",
        "minibatch",
        "mini_batch_size",
        "local_batch_size",
    ),
    "clients_per_round": (
        "participation",
        "fraction",
        "frac",
        "fraction_fit",
        "client_fraction",
        "sample_rate",
        "participants",
        "clients_sampled",
        "fraction_train",
        "min_train_nodes",
        "sample_ratio",
        "num_participants",
        "cohort_size",
        "train_cohort_size",
    ),
    "snr_db": ("snr",),
    "bandwidth_hz": ("bandwidth", "bw", "fft_size"),
    "transmit_power_dbm": ("power", "tx_power", "transmit_power", "power_dbm", "max_power"),
    "devices": ("device_table", "device_conf_file", "hardware"),
    "cpu_hz": ("cpu", "frequency", "cpu_frequency", "cpu_freq", "clock"),
    "noise_dbm_per_hz": ("noise", "noise_density", "n0", "noise_power"),
    "antennas": ("num_antennas", "n_antennas", "mimo"),
    "data_dir": ("dataset_dir", "data_path", "data_root", "root", "datadir"),
    "dataset": ("data", "datasets", "data_set"),
    "split": ("partitioner", "partitioning", "heterogeneity", "distribution"),
    "alpha": ("dirichlet_alpha", "concentration", "dirichlet", "dir_alpha"),
    "eval_every": (
        "eval_interval",
        "test_every",
        "evaluate_every",
        "log_interval",
        "evaluation_frequency",
    ),
    "target": ("target_accuracy", "target_acc"),
    "seed": ("random_seed", "random_state", "manual_seed", "sample_seed"),
    "out": (
        "output",
        "output_dir",
        "out_dir",
        "save_dir",
        "log_dir",
        "logdir",
        "save_path",
        "log_path",
    ),
    "model": ("net", "architecture", "arch", "backbone"),
    "uplink": ("multiple_access", "mac", "access", "channel_access"),
    "server_lr": ("server_learning_rate", "global_lr", "eta_s", "eta_g", "yogi_eta"),
    "assigner": ("submodels", "submodel_assigner"),
    "select": ("selection", "sampler", "client_selection", "sample_mode", "client_sampler"),
    "uplink_compression": ("compressor",),
    "uplink_compression_bits": ("uplink_bits", "quantization_bits"),
    "mu": ("proximal_mu", "prox_mu", "proxy_mu"),
    "weighting": ("weighted_by_key",),
    "shards": ("num_shards", "num_shards_per_partition", "shards_per_client"),
    "trace": ("device_avail_file",),
    "buffer": ("async_buffer", "buffer_size"),
    "requests": ("max_concurrency", "concurrency"),
    "delay_spread_ns": ("delay_spread", "rms_delay_spread"),
    "delay_profile": ("power_delay_profile", "pdp", "tdl"),
    "subcarriers": ("num_subcarriers", "n_subcarriers", "fft_size"),
    "doppler_hz": ("doppler", "max_doppler", "maximum_doppler_shift"),
    "speed_kmh": ("speed", "velocity"),
    "mobility": ("mobility_model", "movement"),
    "block_seconds": ("coherence_time", "block_duration"),
    "carrier_ghz": ("carrier_frequency",),
    "threads": ("num_threads", "n_threads"),
    "subcarrier_hz": ("subcarrier_spacing", "scs"),
    "path_loss": ("scenario", "pathloss", "pathloss_model", "channel_model"),
}
"""Other names of each setting. If two settings have a name in common, the earlier one is meant if
it exists."""
VALUES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("quantization", "quantize", "quantizer", "qsgd", "bits"),
        ("uplink_compression", "quantisation"),
    ),
    **dict.fromkeys(
        ("top_k", "topk", "sparsity", "sparsification"), ("uplink_compression", "top-k")
    ),
    "signsgd": ("uplink_compression", "sign"),
    "cuda": ("device", "cuda"),
    "gpu": ("device", "cuda"),
    "use_gpu": ("device", "cuda"),
    "iid": ("split", "iid"),
    "non_iid": ("split", "noniid"),
    "noniid": ("split", "noniid"),
}
"""Names that mean a value of a setting: the setting and its value."""
ADVICE: Mapping[str, str] = {
    **dict.fromkeys(
        ("optimizer", "optimiser", "optim", "client_optimizer"),
        " The algorithm contains the clients' optimiser, e.g. fedavg (SGD) or local-adam.",
    ),
    **dict.fromkeys(
        ("algorithm", "alg", "algo", "method", "strategy", "aggregator"),
        " The algorithm is named first, without a flag, e.g. fedavg.",
    ),
}
"""Names that no setting stands for, and what to do instead."""


RENAMED: Mapping[str, str] = {
    "compression": "downlink_compression",
    "compression_bits": "downlink_compression_bits",
    "compression_keep": "downlink_compression_keep",
}
"""Flags, and tables of choices, of earlier versions, with their names of today."""


def with_new_names(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Tables or flags, of which those of earlier versions have their names of today."""
    return {
        RENAMED[name] if RENAMED.get(name, name) not in tables and name in RENAMED else name: value
        for name, value in tables.items()
    }


@dataclass(frozen=True)
class Meaning:
    """What an unknown name means.

    Args:
        setting: name of the setting; "" if none is meant.
        value: its value; "" for any.
        advice: what to do instead of giving a setting, with a leading space.
    """

    setting: str = ""
    value: str = ""
    advice: str = ""

    def sentence(self, prefix: str = "", place: str = "") -> str:
        """The hint, with a leading space.

        Args:
            prefix: "--" for a flag, or "".
            place: where the setting belongs, with its separator.
        """
        if self.advice:
            return self.advice
        name = prefix + (self.setting.replace("_", "-") if prefix else self.setting)
        if not self.value:
            return f" Do you mean {name!r}{place}?"
        example = f"{name} {self.value}" if prefix else f'{name}="{self.value}"'
        return f" Do you mean {example}{place}?"


def synonym(name: str, candidates: Collection[str]) -> Meaning | None:
    """The meaning of an unknown name; None if it has none.

    Args:
        name: the name, of a setting or a flag.
        candidates: names of the settings that may be meant, with underscores.
    """
    plain = name.lower().lstrip("-").replace("-", "_")
    if plain in ADVICE:
        return Meaning(advice=ADVICE[plain])
    if plain in VALUES:
        return Meaning(*VALUES[plain])
    for setting, names in SYNONYMS.items():
        if plain in names and setting != plain and setting in candidates:
            return Meaning(setting)
    return None
