"""Short hashes of settings, model, data and network, which must match when a run is resumed."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from channels import Network
from channels.streams import Stream
from wirelessfl.config import Config
from wirelessfl.config.tables import read_toml
from wirelessfl.data import Dataset
from wirelessfl.data.client_samples import ClientSamples
from wirelessfl.errors import ConfigError
from wirelessfl.runs.directory import RunDirectory
from wirelessfl.training.objective import Objective

DRAWN = 1000
"""Maximum number of clients whose channels are part of the network's hash."""


def check_fingerprint(
    directory: RunDirectory, state: dict[str, Any], fingerprint: dict[str, str]
) -> None:
    """Check that settings and objects are those of the run that wrote the checkpoint.

    Raises:
        ConfigError: an entry of ``fingerprint`` differs; the message names it.
    """
    for name, found in fingerprint.items():
        if state["fingerprint"][name] != found:
            raise ConfigError(
                f"{directory.path}: {name} not those of the original run. Restore them, or start a "
                "new run."
            )


def settings_fingerprint(directory: RunDirectory) -> dict[str, str]:
    """Hash of the stored ``config.toml``, independent of the folder's location."""
    tables = read_toml(directory.path / "config.toml")
    tables.get("run", {}).pop("out", None)
    return {"the settings in config.toml are": digest(tables)}


def trace_fingerprint(trace: Path | None) -> dict[str, str]:
    """Hash of the bytes of a recorded trace; empty without a trace."""
    return {} if trace is None else {"the trace's lines are": digest(trace.read_bytes())}


def check_trace(directory: RunDirectory, state: dict[str, Any], config: Config) -> None:
    """Check that a finished run's trace, if it still exists, was not changed.

    Settings and their hash name only the path of the trace.

    Raises:
        ConfigError: its lines differ.
    """
    trace = (config.presence or {}).get("trace")
    if trace is not None and trace.is_file():
        check_fingerprint(directory, state, trace_fingerprint(trace))


def model_fingerprint(objective: Objective) -> str:
    """Hash of a model's layers, frozen parameters and buffers."""
    module = objective.module
    frozen = [p for p in module.parameters() if not p.requires_grad]
    keys = objective.dropout_keys  # buffers that change in every step
    buffers = [value for name, value in module.named_buffers() if name not in keys]
    return digest(str(module), objective.spec.shapes, *map(_array, [*frozen, *buffers]))


def data_fingerprint(data: Dataset, client_samples: ClientSamples) -> str:
    """Hash of a data set and its split; does not compute samples that are generated on demand."""
    return digest(
        _array(_some(data.train_inputs)),
        _array(_some(data.test_inputs)),
        data.train_labels.numpy(),
        data.test_labels.numpy(),
        *client_samples.identity,
    )


def network_fingerprint(network: Network, stream: Stream) -> str:
    """Hash of a network's values and of a channel draw for some clients."""
    plain = [getattr(network, f.name) for f in fields(network) if f.name != "fading"]
    some = network.numbers[:DRAWN]
    return digest(*plain, network.draw(stream.child("fingerprint"), clients=some).h)


def _some(samples: Tensor) -> Tensor:
    return samples[:: max(1, len(samples) // 1000)]


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().contiguous().numpy()


def digest(*things: Any) -> str:
    """Hash of arrays by their bytes, and of other values by their ``repr``."""
    digest = hashlib.blake2b(digest_size=8)
    for thing in things:
        array = isinstance(thing, np.ndarray)
        digest.update(thing.tobytes() if array else repr(thing).encode())
    return digest.hexdigest()
