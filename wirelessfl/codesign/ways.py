"""How updates can cross the air: the uplinks among which a design chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wirelessfl.codesign.goals import Goal
from wirelessfl.errors import ConfigError
from wirelessfl.uplinks import UPLINKS, Uplink
from wirelessfl.wording import suggestion

EQUAL = "ofdma, equal bands"
"""The uplink with which what each choice bought is compared."""
UPLINKS_IN_ROUNDS = ("tdma", "ofdma")
"""Uplinks that a design considers by default."""
AIR = "aircomp"
"""The uplink over the air, whose error variance the learning curve must know."""


@dataclass(frozen=True)
class Way:
    """An uplink with its settings.

    Args:
        title: its name in tables.
        name: name of the uplink.
        settings: settings of the uplink.
        saves: whether W, in seconds per joule, is its setting.
        deadline: whether a deadline of global rounds is its setting.
        noise: sigma^2, relative error variance of sums over the air; 0 without errors.
    """

    title: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    saves: bool = False
    deadline: bool = False
    noise: float = 0.0

    @property
    def decides(self) -> bool:
        """Whether powers and clocks are decided, too."""
        return self.saves or self.deadline

    @property
    def uplink(self) -> Uplink:
        """The uplink."""
        return UPLINKS.find(self.name)(**self.settings)

    def weighing(self, weight: float) -> Way:
        """The same with the weight W of energy."""
        title = "ofdma, least seconds"
        if weight > 0:
            title = f"ofdma, W = {weight:.3g} s/J"
        return Way(title, self.name, {"energy_weight": weight}, saves=True)

    def ending(self, seconds: float, *, lost: bool = False) -> Way:
        """The same with this deadline of global rounds.

        Args:
            seconds: the deadline.
            lost: whether clients that would miss it are left out; otherwise they are an error.
        """
        settings = {"round_deadline": seconds} | ({"late": "lost"} if lost else {})
        title = f"ofdma, least J in {seconds:.4g} s"
        return Way(title, self.name, settings, deadline=True)


WEIGHED = Way("ofdma, least seconds", "ofdma", {"energy_weight": 0.0}, saves=True)
DEADLINE = Way("ofdma, least J in a deadline", "ofdma", deadline=True)
ALL = (
    Way("tdma, equal slots", "tdma"),
    Way("tdma, ready first", "tdma", {"order": "ready"}),
    Way(EQUAL, "ofdma"),
    Way("ofdma, optimal bands", "ofdma", {"allocation": "optimal"}),
    WEIGHED,
)


def ways(names: Sequence[str], goal: Goal, air: Way | None = None) -> list[Way]:
    """The uplinks to consider.

    Args:
        names: names of uplinks.
        goal: the goal; a deadline of rounds saves energy if the run has a limit on seconds.
        air: the uplink over the air, if it is named.

    Raises:
        ConfigError: a name is unknown, or is not one that a design can choose.
    """
    known = (*UPLINKS_IN_ROUNDS, AIR)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"uplink {name!r} is not one that a design chooses."
                f"{suggestion(name, known)} Choose from "
                f"{', '.join(known)}."
            )
    found = [way for way in ALL if way.name in names]
    if goal.target is not None and goal.max_seconds is not None and goal.saves_energy:
        found += [DEADLINE] if "ofdma" in names else []
    if air is not None and AIR in names:
        found.append(air)
    return found
