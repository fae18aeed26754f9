"""Checks that an uplink delivers the payloads, and at the times when clients are ready."""

from __future__ import annotations

from wirelessfl.algorithms import LOCAL
from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError


def check_payloads(settings: Settings) -> None:
    """Raise if the algorithm's payloads do not suit the uplink or the schedule.

    An uplink may deliver only sums, and a schedule may measure changes of the model.

    Raises:
        ConfigError: the algorithm needs single updates, or sends models instead of changes.
    """
    algorithm, uplink = settings.choices.algorithm, settings.choices.uplink
    if settings.choices.schedule.measured is not None and not algorithm.sends_changes:
        raise ConfigError(
            'option is "D", which measures how far updates lie apart, and clients of algorithm '
            f'"{settings.algorithm["name"]}" send their models, not updates. Choose option "S", or '
            'an algorithm such as "fedast".'
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
    """Refuse an uplink that cannot carry the updates of this schedule.

    Raises:
        ConfigError: it cannot.
    """
    uplink, title = settings.choices.uplink, f'uplink "{settings.uplink["name"]}"'
    schedule, under = settings.choices.schedule, f'schedule "{settings.schedule["name"]}"'
    one_draw = not settings.frame.radio
    if uplink.gives == "sum":
        if one_draw:
            raise ConfigError(
                f'delays is "shifted-exponential", one draw for training and upload, and {title} '
                f"has clients send at the same time under {under}. Choose delays "
                '"wireless", or uplink "tdma", "ofdma" or "fixed".'
            )
        if schedule.measured is not None:
            raise ConfigError(
                f'option is "D", which compares single updates under {under}, and {title} '
                'gives only their sum. Choose option "S", or uplink "tdma", "ofdma" or "fixed".'
            )
    elif not one_draw and not uplink.shareable:
        raise ConfigError(
            f"{under} lets clients upload at any time, and {title} does not define how "
            'they then share the band (shared_seconds_per_bit). Choose uplink "tdma", '
            '"ofdma" or "fixed", or delays "shifted-exponential".'
        )
