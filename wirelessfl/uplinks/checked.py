"""The access of an uplink: what a user's access returns is checked, and errors name the uplink."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from channels import Access, ChannelDraw, Load, Rates, Service
from channels.arrays import FloatArray, IntArray
from solvers import SolverUnavailableError
from wirelessfl.errors import ConfigError
from wirelessfl.guard import UnfitError, calling, described, of_project, title_of, wrong_result
from wirelessfl.returned import Shape, reals
from wirelessfl.uplinks.base import Uplink


def checked_access(uplink: Uplink) -> Access:
    """The access of ``uplink``; a user's access is wrapped in :class:`CheckedAccess`."""
    access = uplink.access
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
        with self._calling("serve"):
            service = self.access.serve(load, draw)
        try:
            return _service(service, np.broadcast_shapes(load.shape, draw.h.shape[:-1]))
        except UnfitError as unfit:
            raise self._wrong("serve", unfit) from None

    def rates(self, snr: FloatArray, bandwidth_hz: float) -> Rates:
        """See :class:`Access`.

        Raises:
            ConfigError: the result is not a rate and a duty cycle per upload.
            TrainingError: the access has raised an exception.
        """
        with self._calling("rates"):
            rates = self.access.rates(snr, bandwidth_hz)
        try:
            return _rates(rates, snr)
        except UnfitError as unfit:
            raise self._wrong("rates", unfit) from None

    def _calling(self, method: str) -> AbstractContextManager[None]:
        return calling(f"uplink {title_of(self.uplink)!r}, access.{method}")

    def _wrong(self, method: str, unfit: UnfitError) -> Exception:
        return wrong_result("uplink", self.uplink, f"access.{method}", unfit.found, unfit.wanted)


def _service(value: Any, shape: Shape) -> Service:
    """Check a service of clients [..., clients]."""
    if not isinstance(value, Service):
        raise UnfitError(described(value), "a value of type channels.Service")
    each = f"of shape {list(shape)}, one per client and channel draw, or {list(shape[-1:])}"
    arrived = value.arrived
    if getattr(arrived, "dtype", None) != np.bool_ or arrived.shape not in (shape, shape[-1:]):
        raise UnfitError(f"{described(arrived)} as arrived", f"booleans {each}")
    arrived = np.broadcast_to(arrived, shape)
    found: dict[str, Any] = {}
    for name in ("seconds", "joules"):
        numbers = getattr(value, name)
        if isinstance(numbers, np.ndarray) and numbers.shape in (shape, shape[-1:]):
            # What never arrives may take infinitely long.
            numbers = np.broadcast_to(numbers, shape)
            numbers = np.where(~arrived & (numbers == np.inf), 0.0, numbers)
        try:
            reals(numbers, (shape,), each)
        except UnfitError as unfit:
            wanted = f"{unfit.wanted} where the update arrives"
            raise UnfitError(f"{unfit.found} as {name}", wanted) from None
        found[name] = np.broadcast_to(getattr(value, name), shape)
    return replace(value, arrived=arrived, **found)


def _rates(value: Any, snr: FloatArray) -> Rates:
    """Check the rates of uploads of these SNRs [uploading]."""
    if not isinstance(value, Rates):
        raise UnfitError(described(value), "a value of type channels.Rates")
    each = f"of shape {list(snr.shape)}, one per upload"
    for name in ("bps", "duty"):
        try:
            reals(getattr(value, name), (snr.shape,), each)
        except UnfitError as unfit:
            raise UnfitError(f"{unfit.found} as {name}", unfit.wanted) from None
    if (value.duty > 1).any():
        raise UnfitError(f"{value.duty.max()} as duty", "fractions of the time, from 0 to 1")
    if snr.any() and not value.bps.any():
        raise UnfitError(f"{described(value.bps)} of 0 as bps", "at least one rate > 0")
    return value
