"""Tables of devices in files: the toolkit's own, those of FedScale, and logs of power meters."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from os import PathLike
from pathlib import Path

import numpy as np

from channels.arrays import FloatArray
from channels.devices import NUMBERS, Device
from channels.validation import shown

BUILT_IN = Path(__file__).with_name("devices.csv")
MIXED = "mixed"
"""Name of the mix of built-in devices."""
FEDSCALE = ("computation", "communication")
"""Columns of a device's capacity: milliseconds of inference per sample, and kbit/s of its link."""
TRAINING = 3.0
"""Time of a training step over that of inference, with which FedScale multiplies the former."""
METER = {
    "time": ("time", "seconds", "timestamp"),
    "watts": ("watts", "power"),
    "volts": ("volts", "voltage"),
    "amperes": ("amperes", "amps", "current"),
}
"""Names of the columns of a power meter's log; a unit may follow, as in "current (mA)"."""
UNITS = {"us": 1e-6, "ms": 1e-3, "uw": 1e-6, "mw": 1e-3, "mv": 1e-3, "ua": 1e-6, "ma": 1e-3}
"""Units of such columns that are not seconds, watts, volts or amperes."""


def read_devices(path: str | PathLike[str], *, samples: int | None = None) -> list[Device]:
    r"""Devices of a CSV file, one per row: a table, FedScale's capacities or a power meter's log.

    A table has the columns ``name`` and those fields of :class:`Device` that it needs; empty cells
    are values that are not known. A file with the columns ``computation`` (milliseconds of
    inference per sample) and ``communication`` (kbit/s) has the capacities of FedScale's clients:
    training takes three times the inference, and both directions have the same rate, as there (Lai
    et al., ICML 2022, ``client_device_capacity``). A log has a column of the time, and one of watts
    or two of volts and amperes, while ``samples`` were trained: it is one device, whose energy is
    the integral of the power by the trapezoidal rule.

    >>> from pathlib import Path
    >>> import channels
    >>> rows = ["time_s,voltage (V),current (mA)", "0,5,600", "30,5,600", "60,5,600"]
    >>> _ = Path("phone.csv").write_text("\n".join(rows))
    >>> [phone] = channels.read_devices("phone.csv", samples=3000)
    >>> phone.seconds_per_sample, phone.watts
    (0.02, 3.0)

    Args:
        path: the file, UTF-8, with a header; lines that begin with # are comments.
        samples: number of samples that were trained during a power meter's log.

    Raises:
        ValueError: the file cannot be read, or has an error.
    """
    try:
        with Path(path).expanduser().open(encoding="utf-8-sig", newline="") as file:
            lines = csv.DictReader(
                (line for line in file if not line.startswith("#")), skipinitialspace=True
            )
            header = [(name or "").strip() for name in lines.fieldnames or ()]
            lines.fieldnames = header
            rows = [
                {key: (cell or "").strip() for key, cell in row.items() if key} for row in lines
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        text = error.strerror if isinstance(error, OSError) else str(error)
        raise ValueError(f"{path}: cannot be read as CSV: {text}.") from error
    if not rows:
        raise ValueError(f"{path}: has no rows: give a header and one row per device.")
    try:
        if set(FEDSCALE) <= {*header}:
            return [_of_fedscale(number, row) for number, row in enumerate(rows)]
        columns = _meter_columns(header)
        if columns is not None:
            return [_measured(Path(path).stem, columns, rows, samples)]
        unknown = [name for name in header if name not in ("name", "source", *NUMBERS)]
        if "name" not in header or unknown:
            raise ValueError(_unknown(header, unknown))
        return [_device(row) for row in rows]
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _unknown(header: Sequence[str], unknown: Sequence[str]) -> str:
    if not unknown:
        return (
            "has no column name. Give a table of devices, FedScale's columns computation and "
            "communication, or a log with a time and watts, or volts and amperes."
        )
    near = difflib.get_close_matches(unknown[0], NUMBERS, 1)
    meant = f" Do you mean {near[0]}?" if near else f" Choose from {', '.join(NUMBERS)}."
    return f"unknown column {unknown[0]!r}.{meant}"


def _device(row: dict[str, str]) -> Device:
    values = {key: _number(key, cell) for key, cell in row.items() if cell and key in NUMBERS}
    return Device(name=row["name"], source=row.get("source", ""), **values)  # type: ignore[arg-type]


def _of_fedscale(number: int, row: dict[str, str]) -> Device:
    milliseconds, kbps = (_number(key, row[key]) for key in FEDSCALE)
    return Device(
        name=row.get("name") or row.get("client_id") or f"client {number}",
        seconds_per_sample=TRAINING * milliseconds / 1e3,
        uplink_mbps=kbps / 1e3,
        downlink_mbps=kbps / 1e3,
        source="FedScale's capacities",
    )


def _number(key: str, cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"{key} is {shown(cell)}: give a number.") from None


def _meter_columns(header: Sequence[str]) -> dict[str, tuple[str, float]] | None:
    """Column and unit of each quantity of a log; None if the file is none."""
    columns: dict[str, tuple[str, float]] = {}
    for name in header:
        words = "".join(c if c.isalnum() else " " for c in name.lower()).split()
        for quantity, names in METER.items():
            if words and words[0] in names and quantity not in columns:
                unit = words[-1] if len(words) > 1 else ""
                columns[quantity] = name, UNITS.get(unit, 1.0)
    power = "watts" in columns or {"volts", "amperes"} <= columns.keys()
    return columns if "time" in columns and power and "name" not in header else None


def _measured(
    name: str,
    columns: dict[str, tuple[str, float]],
    rows: Sequence[dict[str, str]],
    samples: int | None,
) -> Device:
    """The device of a power meter's log."""
    if samples is None or samples < 1:
        raise ValueError(
            "is a log of power: say how many samples were trained in it, "
            "channels.read_devices(path, samples=...)."
        )

    def column(quantity: str) -> FloatArray:
        key, unit = columns[quantity]
        read = _seconds if quantity == "time" else _number
        return unit * np.array([read(key, row[key]) for row in rows])

    times = column("time")
    if len(times) < 2 or not (np.diff(times) > 0).all():
        raise ValueError("needs two rows or more, whose times increase.")
    power = column("watts") if "watts" in columns else column("volts") * column("amperes")
    seconds = times[-1] - times[0]
    joules = float(np.dot(power[1:] + power[:-1], np.diff(times)) / 2)
    return Device(
        name=name,
        seconds_per_sample=seconds / samples,
        joules_per_sample=joules / samples,
        source=f"power meter, {len(rows)} readings in {seconds:.4g} s",
    )


def _seconds(key: str, cell: str) -> float:
    """A time: seconds, or a date and time of ISO 8601."""
    try:
        return float(cell)
    except ValueError:
        try:
            return datetime.fromisoformat(cell).timestamp()
        except ValueError:
            raise ValueError(f"{key} is {shown(cell)}: give seconds, or ISO 8601.") from None


DEVICES: Mapping[str, Device] = {device.name: device for device in read_devices(BUILT_IN)}
"""The built-in devices by name, each with its source; their shares are those of ``mixed``."""


def named_devices(name: str) -> list[Device]:
    """The table with a name: of the devices of ``mixed``, or of one device.

    Raises:
        ValueError: there is no such name.
    """
    if name == MIXED:
        return [device for device in DEVICES.values() if device.share is not None]
    if name in DEVICES:
        return [replace(DEVICES[name], share=None)]
    near = difflib.get_close_matches(name, [MIXED, *DEVICES], 1)
    meant = f"do you mean {near[0]}?" if near else f"choose from {', '.join([MIXED, *DEVICES])}."
    raise ValueError(f"devices is {name!r}, which is no file and no built-in device: {meant}")
