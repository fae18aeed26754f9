"""Checks that the uplink delivers the algorithm's payloads under the schedule."""

from __future__ import annotations

from wirelessfl.algorithms import LOCAL
from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError
from wirelessfl.wording import public_path


def check_payloads(settings: Settings) -> None:
    """Raise if the algorithm's payloads do not suit the uplink.

    Raises:
        ConfigError: the algorithm needs individual updates, but the uplink delivers only sums.
    """
    rule, uplink = settings.algorithm.rule, settings.uplink
    alone = [payload.name for payload in rule.payloads if payload.each]
    if alone and uplink.gives == "sum":
        local = settings.tables["algorithm"].get("local", LOCAL)
        name = settings.named("algorithm")
        who = f'algorithm "{name}"' if local == LOCAL else f'local "{local}"'
        raise ConfigError(
            f"{who} needs each client's {' and '.join(alone)}, and uplink "
            f'"{settings.named("uplink")}" gives only their sum. Choose uplink "tdma", "ofdma" or '
            '"fixed".'
        )


def check_shared_uplink(settings: Settings) -> None:
    """Refuse an uplink that does not suit the times at which clients send under the schedule.

    Raises:
        ConfigError: the uplink conflicts with the schedule, or the latency model.
    """
    uplink, title = settings.uplink, f'uplink "{settings.named("uplink")}"'
    under = f'schedule "{settings.named("schedule")}"'
    one_draw = not settings.frame.radio
    if uplink.gives == "sum":
        if one_draw:
            raise ConfigError(
                f'delays="shifted-exponential" conflicts with {title}: it draws one time for '
                f"training and upload, but clients send at the same time under {under}. Choose "
                'delays "wireless", or uplink "tdma", "ofdma" or "fixed".'
            )
    elif not one_draw and not uplink.access.asynchronous:
        raise ConfigError(
            f"{under} lets clients upload at any time, but the access of {title}, "
            f"{public_path(type(uplink.access))}, has no method rates and serves whole rounds "
            'only. Choose uplink "tdma", "fixed" or "ofdma" with allocation "equal", or delays '
            '"shifted-exponential".'
        )
