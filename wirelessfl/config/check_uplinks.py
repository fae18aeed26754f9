"""Checks of what goes with an uplink: payloads, and clients that upload when they are ready."""

from __future__ import annotations

from wirelessfl.algorithms import LOCAL
from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError


def check_payloads(settings: Settings) -> None:
    """Refuse an uplink or a schedule that needs other payloads than the algorithm's.

    An uplink may give sums alone, and a schedule measure changes of the model.

    Raises:
        ConfigError: it is such.
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
    """Refuse an uplink that cannot take the updates of this schedule.

    Raises:
        ConfigError: it is such.
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
                f'option is "D", which looks at each update under {under}, and {title} '
                'gives only their sum. Choose option "S", or uplink "tdma", "ofdma" or "fixed".'
            )
    elif not one_draw and not uplink.shareable:
        raise ConfigError(
            f"{under} lets clients upload at any time, and {title} does not say how "
            'they share the band then (shared_seconds_per_bit). Choose uplink "tdma", '
            '"ofdma" or "fixed", or delays "shifted-exponential".'
        )
