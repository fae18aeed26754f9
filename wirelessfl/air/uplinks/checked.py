"""The access of an uplink: what a user's access returns is checked, and errors name the uplink."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from channels import Access, ChannelDraw, Load, Rates, Service
from channels.arrays import BoolArray, FloatArray, IntArray
from solvers import SolverUnavailableError
from wirelessfl.air.uplinks.uplink import Uplink
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import (
    Shape,
    UnfitError,
    calling,
    described,
    of_project,
    reals,
    title_of,
    wrong_result,
)

Answer = TypeVar("Answer")


def checked_access(uplink: Uplink, access: Access | None = None) -> Access:
    """An access of ``uplink``, None for its ``access``; users' ones become ``CheckedAccess``."""
    access = uplink.access if access is None else access
    return access if of_project(type(access)) else CheckedAccess(uplink, access)


@contextmanager
def serving(title: str) -> Iterator[None]:
    """Turn what an access cannot serve into an error that names the uplink.

    Args:
        title: uplink, and round if it is known.

    Raises:
        ConfigError: the code in the block has raised ``ValueError``, or a solver is missing.
    """
    try:
        yield
    except ConfigError:
        raise
    except (SolverUnavailableError, ValueError) as error:
        raise ConfigError(f"{title}: {error}") from error


def check_arrived(service: Service, clients: IntArray, title: str) -> None:
    """Raise unless all updates arrive, as schedules with common uploads need.

    Args:
        service: service of the clients.
        clients: [clients], their numbers.
        title: uplink, and round if it is known.

    Raises:
        ConfigError: an update does not arrive.
    """
    lost = ~service.arrived
    if lost.any():
        raise ConfigError(
            f"{title}: the update of client {clients[np.argwhere(lost)[0, -1]]} does not arrive. "
            "Let access.serve deliver all updates, or choose another uplink."
        )


@dataclass(frozen=True)
class CheckedAccess(Access):
    """A user's access, whose results are checked and whose exceptions become one line.

    Args:
        uplink: uplink that errors name.
        access: the user's access.
    """

    uplink: Uplink
    access: Access

    def __post_init__(self) -> None:
        object.__setattr__(self, "coupled", self.access.coupled)

    @property
    def asynchronous(self) -> bool:
        """Whether the user's access implements ``rates``."""
        return self.access.asynchronous

    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`Access`.

        Raises:
            ConfigError: the result is not a service of these clients.
            TrainingError: the access has raised an exception.
        """
        shape = np.broadcast_shapes(load.shape, draw.h.shape[:-1])
        return self._checked("serve", lambda service: _service(service, shape), load, draw)

    def sent(self, draw: ChannelDraw) -> ChannelDraw:
        """See :class:`Access`."""
        return self.access.sent(draw)

    def soonest(self, load: Load, draw: ChannelDraw, counts: IntArray) -> BoolArray:
        """See :class:`Access`; the default asks for the seconds of the user's access.

        Raises:
            ConfigError: the result does not say which clients are chosen, or chooses too many.
            TrainingError: the access has raised an exception.
        """
        if type(self.access).soonest is Access.soonest:
            return super().soonest(load, draw, counts)
        shape = np.broadcast_shapes(load.shape, draw.h.shape[:-1])

        def check(value: Any) -> BoolArray:
            return _chosen(value, shape, draw, counts)

        return self._checked("soonest", check, load, draw, counts)

    def rates(self, snr: FloatArray, bandwidth_hz: float) -> Rates:
        """See :class:`Access`.

        Raises:
            ConfigError: the result is not a rate and a duty cycle per upload.
            TrainingError: the access has raised an exception.
        """
        return self._checked("rates", lambda rates: _rates(rates, snr), snr, bandwidth_hz)

    def _checked(self, method: str, check: Callable[[Any], Answer], *arguments: Any) -> Answer:
        """What the access answers, if it passes ``check``."""
        name = f"access.{method}"
        with calling(f"uplink {title_of(self.uplink)!r}, {name}"):
            answer = getattr(self.access, method)(*arguments)
        try:
            return check(answer)
        except UnfitError as unfit:
            raise wrong_result("uplink", self.uplink, name, unfit.result, unfit.expected) from None


def _numbers(name: str, values: Any, shape: Shape, required: str) -> None:
    """Check real numbers >= 0, and name the field in the error."""
    try:
        reals(values, (shape,), required)
    except UnfitError as unfit:
        raise UnfitError(f"{unfit.result} as {name}", unfit.expected) from None


def _service(value: Any, shape: Shape) -> Service:
    """Check a service of clients [..., clients]."""
    if not isinstance(value, Service):
        raise UnfitError(described(value), "a value of type channels.Service")
    shapes = f"of shape {list(shape)}, one per client and channel draw, or {list(shape[-1:])}"
    arrived = value.arrived
    if getattr(arrived, "dtype", None) != np.bool_ or arrived.shape not in (shape, shape[-1:]):
        raise UnfitError(f"{described(arrived)} as arrived", f"booleans {shapes}")
    arrived = np.broadcast_to(arrived, shape)
    arrays: dict[str, Any] = {}
    names = ["seconds", "joules"]
    if value.airtime_seconds is not None:
        names.append("airtime_seconds")
    for name in names:
        numbers = getattr(value, name)
        if isinstance(numbers, np.ndarray) and numbers.shape in (shape, shape[-1:]):
            # What never arrives may take infinitely long.
            numbers = np.broadcast_to(numbers, shape)
            numbers = np.where(~arrived & (numbers == np.inf), 0.0, numbers)
        _numbers(name, numbers, shape, f"{shapes}, where the update arrives")
        arrays[name] = np.broadcast_to(getattr(value, name), shape)
    return replace(value, arrived=arrived, **arrays)


def _chosen(value: Any, shape: Shape, draw: ChannelDraw, counts: IntArray) -> BoolArray:
    """Check for booleans [..., clients], of which at most ``counts`` [cells] are true per cell."""
    required = (
        f"booleans of shape {list(shape)}, true for at most counts[cell] clients of each cell"
    )
    if getattr(value, "dtype", None) != np.bool_ or value.shape != shape:
        raise UnfitError(described(value), required)
    chosen = draw.network.over_cells(np.add, value.astype(np.float64))
    if (chosen > counts).any():
        *_, cell = np.argwhere(chosen > counts)[0]
        raise UnfitError(f"{chosen[..., cell].max():.0f} clients of cell {cell}", required)
    return np.asarray(value)


def _rates(value: Any, snr: FloatArray) -> Rates:
    """Check the rates of uploads of these SNRs [uploading]."""
    if not isinstance(value, Rates):
        raise UnfitError(described(value), "a value of type channels.Rates")
    shapes = f"of shape {list(snr.shape)}, one per upload"
    for name in ("bps", "duty"):
        _numbers(name, getattr(value, name), snr.shape, shapes)
    if (value.duty > 1).any():
        raise UnfitError(f"{value.duty.max()} as duty", "fractions of the time, from 0 to 1")
    if snr.any() and not value.bps.any():
        raise UnfitError(f"{described(value.bps)} of 0 as bps", "at least one rate > 0")
    return value
