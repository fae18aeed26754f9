"""Short hashes that tell one run from another, so that none goes on with what is not its own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from torch import Tensor

from channels import Network
from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.config.tables import read_toml
from wirelessfl.data import Dataset
from wirelessfl.errors import ConfigError
from wirelessfl.runs.about import CHECKPOINT_LAYOUT, NUMERICS, ROWS_SCHEMA
from wirelessfl.runs.directory import RunDirectory
from wirelessfl.training.objective import Objective


def check_marks(directory: RunDirectory, state: dict[str, Any], marks: dict[str, str]) -> None:
    """Refuse to resume with anything but what the checkpoint's run began with.

    Raises:
        ConfigError: one of ``marks`` differs; the message says of what.
    """
    for name, mark in marks.items():
        if state["fingerprint"][name] != mark:
            raise ConfigError(
                f"{directory.path}: {name} not those that the run began with. Restore them, or "
                "begin a new run."
            )


def check_version(directory: RunDirectory, state: dict[str, Any]) -> None:
    """Refuse a checkpoint that another version of the package wrote in another way.

    Raises:
        ConfigError: its layout differs, or its results would, were it resumed.
    """
    remedy = f"Start a new run: wirelessfl run --config {directory.path}/config.toml --out NEW"
    if state.get("schema") != ROWS_SCHEMA:
        raise ConfigError(
            f"{directory.path} has rows of schema {state.get('schema')}, and this version of "
            f"wirelessfl writes {ROWS_SCHEMA}. {remedy}"
        )
    layout = state.get("layout", 1)  # the first one did not say
    if layout != CHECKPOINT_LAYOUT:
        age = "an earlier" if layout < CHECKPOINT_LAYOUT else "a later"
        raise ConfigError(
            f"the run in {directory.path} was begun with {age} version of wirelessfl (checkpoint "
            f"layout {layout}, this one reads {CHECKPOINT_LAYOUT}). {remedy}"
        )
    if not state["finished"] and state["numerics"] != NUMERICS:
        raise ConfigError(
            f"{directory.path} began with numerics {state['numerics']}, and this version of "
            f"wirelessfl has {NUMERICS}: its results differ. {remedy}"
        )


def settings_mark(directory: RunDirectory) -> dict[str, str]:
    """The hash of ``config.toml`` as it is stored, wherever the folder is now."""
    tables = read_toml(directory.path / "config.toml")
    tables.get("run", {}).pop("out", None)
    return {"the settings in config.toml are": digest(tables)}


def model_mark(objective: Objective) -> str:
    """Of a model's layers, frozen parameters and buffers."""
    module = objective.module
    frozen = [p for p in module.parameters() if not p.requires_grad]
    keys = objective.dropout_keys  # they change with every step
    buffers = [value for name, value in module.named_buffers() if name not in keys]
    return digest(str(module), objective.spec.shapes, *map(_array, [*frozen, *buffers]))


def data_mark(data: Dataset, parts: Sequence[IntArray]) -> str:
    """Of a data set and its split; parts that are dealt on demand are not all worked out for it."""
    return digest(
        _array(_some(data.train_inputs)),
        _array(_some(data.test_inputs)),
        data.train_labels.numpy(),
        data.test_labels.numpy(),
        *getattr(parts, "identity", parts),
    )


def network_mark(network: Network, stream: Stream) -> str:
    """Of a network's values."""
    plain = [getattr(network, f.name) for f in fields(network) if f.name != "fading"]
    return digest(*plain, network.draw(stream.child("fingerprint")).h)


def _some(samples: Tensor) -> Tensor:
    return samples[:: max(1, len(samples) // 1000)]


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().contiguous().numpy()


def digest(*things: Any) -> str:
    """Of arrays by their bytes, of other things by their text."""
    digest = hashlib.blake2b(digest_size=8)
    for thing in things:
        array = isinstance(thing, np.ndarray)
        digest.update(thing.tobytes() if array else repr(thing).encode())
    return digest.hexdigest()
