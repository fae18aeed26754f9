"""Checks that the uplink delivers the algorithm's payloads under the schedule."""

from __future__ import annotations

from wirelessfl.algorithms import LOCAL
from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError
from wirelessfl.wording import public_path


def check_payloads(settings: Settings) -> None:
    """Raise if the algorithm's payloads do not suit the uplink or the schedule.

    Raises:
        ConfigError: the algorithm needs individual updates, but the uplink delivers only sums; or
            the schedule measures changes of the model, but clients send models.
    """
    algorithm, uplink = settings.choices.algorithm, settings.choices.uplink
    if settings.choices.schedule.measured is not None and not algorithm.sends_changes:
        raise ConfigError(
            'option="D" measures the spread of updates, but clients of algorithm '
            f'"{settings.algorithm["name"]}" send models: choose option "S", or an algorithm such '
            'as "fedast".'
        )
    if settings.choices.schedule.measured is not None and settings.training.local_epochs:
        raise ConfigError(
            f'option="D" conflicts with local_epochs={settings.training.local_epochs:g}: it '
            "measures the spread of updates of equal numbers of local steps. Choose option "
            '"S", or give local_steps instead.'
        )
    alone = [payload.name for payload in algorithm.payloads if payload.each]
    if alone and uplink.gives == "sum":
        local = settings.algorithm.get("local", LOCAL)
        name = settings.algorithm["name"]
        who = f'algorithm "{name}"' if local == LOCAL else f'local "{local}"'
        raise ConfigError(
            f"{who} needs each client's {' and '.join(alone)}, and uplink "
            f'"{settings.uplink["name"]}" gives only their sum. Choose uplink "tdma", "ofdma" or '
            '"fixed".'
        )


def check_shared_uplink(settings: Settings) -> None:
    """Refuse an uplink that does not suit the times at which clients send under the schedule.

    Raises:
        ConfigError: the uplink conflicts with the schedule, its option, or the latency model.
    """
    uplink, title = settings.choices.uplink, f'uplink "{settings.uplink["name"]}"'
    schedule, under = settings.choices.schedule, f'schedule "{settings.schedule["name"]}"'
    one_draw = not settings.frame.radio
    if uplink.gives == "sum":
        if one_draw:
            raise ConfigError(
                f'delays="shifted-exponential" conflicts with {title}: it draws one time for '
                f"training and upload, but clients send at the same time under {under}. Choose "
                'delays "wireless", or uplink "tdma", "ofdma" or "fixed".'
            )
        if schedule.measured is not None:
            raise ConfigError(
                f'option="D" compares individual updates under {under}, but {title} gives only '
                'their sum: choose option "S", or uplink "tdma", "ofdma" or "fixed".'
            )
    elif not one_draw and not uplink.access.asynchronous:
        raise ConfigError(
            f"{under} lets clients upload at any time, but the access of {title}, "
            f"{public_path(type(uplink.access))}, has no method rates and serves whole rounds "
            'only. Choose uplink "tdma", "fixed" or "ofdma" with allocation "equal", or delays '
            '"shifted-exponential".'
        )
