"""What uplinks need from the algorithm, the schedule and the latency model."""

from __future__ import annotations

from typing import Any

from wirelessfl.needs import Suits
from wirelessfl.wording import public_path


def _each(run: Any) -> list[str]:
    """Names of the payloads that the algorithm needs from each client."""
    return [payload.name for payload in run.settings.algorithm.rule.payloads if payload.each]


def _needs_each(run: Any, _: Any) -> str:
    """The message for an uplink that delivers only sums."""
    table = run.settings.tables["algorithm"]
    who = f'local "{table["local"]}"' if "local" in table else f'algorithm "{table["name"]}"'
    return (
        f"{who} needs each client's {' and '.join(_each(run))}, and uplink "
        f'"{run.settings.named("uplink")}" gives only their sum. Choose uplink "tdma", "ofdma" or '
        '"fixed"'
    )


def _without_rates(run: Any, _: Any) -> str:
    """The message for an access that serves whole rounds only."""
    settings = run.settings
    return (
        f'schedule "{settings.named("schedule")}" lets clients upload at any time, but the access '
        f'of uplink "{settings.named("uplink")}", {public_path(type(settings.uplink.access))}, has '
        'no method rates and serves whole rounds only. Choose uplink "tdma", "fixed" or "ofdma" '
        'with allocation "equal", or delays "shifted-exponential"'
    )


DELIVERS = Suits(lambda run, _: run.uplink.gives != "sum" or not _each(run), _needs_each)
"""An uplink that delivers the algorithm's payloads."""
AT_ONE_TIME = Suits(
    lambda run, _: run.uplink.gives != "sum" or run.radio,
    'delays="{run.settings.tables[delays][name]}" conflicts with uplink '
    '"{run.settings.tables[uplink][name]}": it '
    "draws one time for training and upload, but clients send at the same time under schedule "
    '"{run.settings.tables[schedule][name]}". Choose delays "wireless", or uplink "tdma", "ofdma" '
    'or "fixed"',
)
"""A time of sending of its own, if clients send at the same time."""
AT_ANY_TIME = Suits(
    lambda run, _: (
        not run.regime.of_tasks
        or run.uplink.gives == "sum"
        or not run.radio
        or run.settings.uplink.access.asynchronous
    ),
    _without_rates,
)
"""An uplink over which clients can send whenever they are ready."""
