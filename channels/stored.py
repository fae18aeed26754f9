"""Networks in files of NumPy: all arrays and the fading model, bit for bit, without pickle."""

from __future__ import annotations

import json
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from channels.delay_profile import DelayProfile
from channels.devices import Device, Devices
from channels.doppler import Doppler
from channels.fading import Fading, Rayleigh, Rician
from channels.interference import ActiveInterference, Interference
from channels.moving import Moving
from channels.network import Network
from channels.npz import read_npz
from channels.placement import Placement
from channels.recorded import Recorded
from channels.validation import shown

LARGEST = 10**6
"""Maximum number of clients of a stored network."""
PARTS: dict[str, type[Any]] = {"interference": Interference, "placement": Placement}
"""Fields that are objects with arrays of their own."""
ACTIVE = "active"
"""Entry of interference by active clients."""
SETTINGS = "settings"
"""Name of the array that has the values that are not arrays, as JSON."""

Arrays = dict[str, NDArray[Any]]


def save_network(network: Network, path: str | PathLike[str]) -> None:
    """Write a network to a ``.npz`` file, from which :func:`load_network` reads an equal one.

    >>> import channels
    >>> network = channels.umi(cells=1, clients=3, stream=channels.Stream(1))
    >>> channels.save_network(network, "umi.npz")
    >>> channels.load_network("umi.npz").clients
    3

    Args:
        network: the network.
        path: the file; its name should end in ``.npz``.

    Raises:
        ValueError: the network cannot be stored, see :func:`why_not_stored`.
        TypeError: ``network`` is not a network.
    """
    if not isinstance(network, Network):
        raise TypeError(f"network is {shown(network)}: give a channels.Network.")
    arrays = network_arrays(network)
    with Path(path).expanduser().open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def load_network(path: str | PathLike[str] | IO[bytes]) -> Network:
    """Read a network that :func:`save_network` has written, such as ``network.npz`` of a run.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> channels.save_network(network, "cells.npz")
    >>> bool((channels.load_network("cells.npz").gain_db == network.gain_db).all())
    True

    Args:
        path: the file, or an open one.

    Raises:
        ValueError: the file is missing, damaged, or not that of a network.
    """
    try:
        return network_of(read_npz(path))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{getattr(path, 'name', path)} cannot be read as a network ({reason}): give a file "
            "of save_network."
        ) from None


def why_not_stored(network: Network) -> str:
    """Why a network cannot be stored; empty if it can.

    Args:
        network: the network; its fading model must be one of this package, its interference in
            watts an array, and it must have at most ``LARGEST`` clients.
    """
    if network.clients > LARGEST:
        return f"it has {network.clients} clients, and files have at most {LARGEST}"
    taps = getattr(network.fading, "taps", network.fading)
    if isinstance(network.fading, Moving) or getattr(taps, "speeds", None) is not None:
        return "its clients move"
    if type(network.fading) not in (Rayleigh, Rician, Doppler, DelayProfile, Recorded):
        kind = type(network.fading)
        return f"its fading model {kind.__module__}.{kind.__qualname__} is not one of channels"
    if callable(network.interference_watts):
        return "its interference_watts is a function: give an array [blocks, cells]"
    return ""


def network_arrays(network: Network) -> Arrays:
    """All that determines a network, as arrays by name.

    Raises:
        ValueError: the network cannot be stored, see :func:`why_not_stored`.
    """
    reason = why_not_stored(network)
    if reason:
        raise ValueError(f"the network cannot be stored: {reason}.")
    settings: dict[str, Any] = {}
    arrays: Arrays = {}
    for name in _names(Network):
        value = getattr(network, name)
        if name == "fading":
            settings[name] = _fading_settings(value)
            if isinstance(value, Recorded):
                arrays |= {"fading.h": value.h, "fading.gain_db": value.gain_db}
                if value.spectrum is not None:
                    arrays["fading.spectrum"] = value.spectrum
        elif name == "devices":
            if value is not None:  # files of networks with clocks stay as they were
                arrays["devices.of"] = value.of
                settings[name] = _devices_settings(value)
        elif name in PARTS and value is not None:
            settings[name] = {ACTIVE: True} if isinstance(value, ActiveInterference) else {}
            for key in _names(PARTS[name]):
                _put(f"{name}.{key}", getattr(value, key), settings[name], arrays, key)
        else:
            _put(name, value, settings, arrays, name)
    return {SETTINGS: np.array(json.dumps(settings)), **arrays}


def network_of(arrays: Arrays) -> Network:
    """The network with these arrays.

    Raises:
        ValueError: an array has a wrong shape or value.
        KeyError: an array is missing.
    """
    settings = json.loads(str(arrays[SETTINGS]))
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if name == "fading":
            values[name] = _fading(value, arrays)
        elif name == "devices":
            table = [Device(**row) for row in value["table"]]
            values[name] = Devices(table, arrays["devices.of"], value["samples"], value["flops"])
        elif name in PARTS and value is not None:
            gain_fields = {
                key.partition(".")[2]: array
                for key, array in arrays.items()
                if key.startswith(f"{name}.")
            }
            kind = ActiveInterference if value.pop(ACTIVE, False) else PARTS[name]
            values[name] = kind(**{**value, **gain_fields})
        elif isinstance(value, list):  # a complex number
            values[name] = complex(*value)
        else:
            values[name] = value
    for name, array in arrays.items():
        array.setflags(write=False)
        if name in _names(Network):
            values[name] = array
    return Network(**values)


def _names(kind: type[Any]) -> list[str]:
    """Arguments of a class."""
    return [entry.name for entry in fields(kind) if entry.init]


def _put(name: str, value: Any, settings: dict[str, Any], arrays: Arrays, key: str) -> None:
    """Put a value among the arrays or, if it is none, among the settings."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
    elif isinstance(value, complex | np.complexfloating):
        settings[key] = [float(value.real), float(value.imag)]
    else:
        settings[key] = value.item() if isinstance(value, np.generic) else value


def _devices_settings(devices: Devices) -> dict[str, Any]:
    defaults = {entry.name: entry.default for entry in fields(Device)}
    table = [
        {name: value for name, value in vars(row).items() if value != defaults[name]}
        for row in devices.table
    ]
    return {"table": table, "samples": devices.samples, "flops": devices.flops}


def _fading_settings(fading: Fading) -> dict[str, Any]:
    if isinstance(fading, Doppler):
        return {"name": "doppler", **vars(fading), "fading": _fading_settings(fading.fading)}
    if isinstance(fading, DelayProfile):
        return {"name": "delay-profile", **vars(fading), "taps": _fading_settings(fading.taps)}
    if isinstance(fading, Rician):
        return {"name": "rician", "k_factor_db": float(fading.k_factor_db)}
    return {"name": "recorded" if isinstance(fading, Recorded) else "rayleigh"}


def _fading(settings: dict[str, Any], arrays: Arrays) -> Fading:
    """The stored fading model."""
    if settings["name"] == "rician":
        return Rician(settings["k_factor_db"])
    if settings["name"] == "rayleigh":
        return Rayleigh()
    if settings["name"] == "doppler":
        values = {name: value for name, value in settings.items() if name != "name"}
        return Doppler(**values | {"fading": _fading(settings["fading"], arrays)})
    if settings["name"] == "delay-profile":
        values = {name: value for name, value in settings.items() if name != "name"}
        return DelayProfile(**values | {"taps": _fading(settings["taps"], arrays)})
    recorded = object.__new__(Recorded)  # its channels are normalised already
    recorded.h, recorded.gain_db = arrays["fading.h"], arrays["fading.gain_db"]
    recorded.spectrum = arrays.get("fading.spectrum")
    return recorded


__all__ = ["load_network", "network_arrays", "network_of", "save_network", "why_not_stored"]
