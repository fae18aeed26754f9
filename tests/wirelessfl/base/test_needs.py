"""What fields need, in a user's own class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from pydantic import Field

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.needs import STALE, Fits, Needs, Suits, beside, needs_of, without
from wirelessfl.config import Config


@dataclass(frozen=True)
class Own(FedAvg):
    """Settings with each form of need."""

    mode: Annotated[
        Literal["plain", "noisy"],
        Fits(
            lambda run, owner: owner.mode == "plain" or run.sessions is None,
            "conflicts with sessions={run.sessions}: choose mode plain",
        ),
    ] = "plain"
    level: Annotated[float, Field(ge=0), beside("mode", "noisy")] = 1.0
    seconds: Annotated[float | None, Field(gt=0)] = None
    steps: Annotated[
        int,
        without("seconds"),
        Suits(
            lambda run, owner: owner.steps <= run.settings.network.clients,
            "steps={owner.steps} exceeds the {run.settings.network.clients} clients: lower it",
        ),
    ] = 3
    delay: Annotated[int, (STALE, beside("seconds"))] = 0


NAME = f"{__name__}:Own"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"level": 2.0}, 'level=2.0 conflicts with mode="plain": choose mode "noisy", or leave'),
        ({"steps": 3, "seconds": 0.5}, "steps=3 conflicts with seconds=0.5, which replaces it"),
        ({"delay": 1}, 'delay=1 conflicts with schedule "rounds", under which no update is stale'),
        ({"delay": 1, "schedule": "buffered"}, "delay=1 needs seconds: set it, or leave delay"),
        ({"mode": "noisy", "sessions": 3}, "mode='noisy' conflicts with sessions=3: choose mode"),
        ({"clients": 2}, "steps=3 exceeds the 2 clients: lower it."),  # of a default, too
    ],
)
def test_a_setting_whose_need_is_not_met_is_refused_with_the_reason(flags, words):
    with pytest.raises(ConfigError) as refused:
        Config.from_flags(NAME, **flags)
    assert str(refused.value).startswith(words)
    assert len(str(refused.value).splitlines()) == 1


def test_settings_whose_needs_are_met_are_stored():
    flags = {"mode": "noisy", "level": 2.0, "schedule": "buffered", "seconds": 0.5, "delay": 1}
    used = Config.from_flags(NAME, **flags).used_tables()["algorithm"]
    assert used["level"] == 2.0
    assert used["delay"] == 1
    assert "steps" not in used


def test_needs_are_read_in_the_order_of_the_annotation():
    assert needs_of(Own)["delay"][0] == STALE
    assert len(needs_of(Own)["delay"]) == 2
    assert "mode" not in needs_of(Own)
    assert [type(need) for need in needs_of(Own, Fits)["mode"]] == [Fits]
    assert all(type(need) is Needs for needs in needs_of(Own).values() for need in needs)
