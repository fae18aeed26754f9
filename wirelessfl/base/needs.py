"""What a setting needs to have an effect, as metadata of its field: ``Annotated[int, Needs(...)]``.

Settings whose needs are not met are refused if given, and not stored. ``Fits`` states which values
fit the run, and ``Suits`` which settings suit each other; others are always refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_type_hints


@dataclass(frozen=True)
class Needs:
    """A condition that a run must meet for a setting to have an effect.

    Args:
        met: whether it is met: a function of ``run``, a ``wirelessfl.config.kinds.Frame``, and of
            ``owner``, the section or choice that has the setting.
        reason: why the setting has no effect otherwise, as a message puts it after the setting's
            name and value: "conflicts with X, which ...: choose ...", or "needs X: set it".
            ``{run.ATTRIBUTE}`` and ``{owner.SETTING}`` stand for values; or a function as ``met``.
    """

    met: Callable[[Any, Any], object]
    reason: str | Callable[[Any, Any], str]

    def why_not(self, run: Any, owner: Any = None) -> str:
        """The reason why a setting with this condition has no effect if it is not met."""
        reason = self.reason
        return (
            reason.format(run=run, owner=owner) if isinstance(reason, str) else reason(run, owner)
        )


class Fits(Needs):
    """A condition that the value of a setting must meet, given or a default: refused otherwise."""


class Suits(Needs):
    """A condition on several settings, beside the one that they concern: refused otherwise.

    Its reason is the whole message without the full stop, and names the settings itself.
    """


Asked = tuple[tuple[str, str], tuple[Needs, ...], Any]
"""Table and key of a setting, its needs, and the section or choice that has it."""


def unmet(asked: Iterable[Asked], run: Any) -> dict[tuple[str, str], str]:
    """The reason of the first need of each setting that the run does not meet, by table and key.

    Args:
        asked: the settings; without unmet needs, they are left out of the result.
        run: as for ``Needs``.
    """
    reasons: dict[tuple[str, str], str] = {}
    for place, needs, owner in asked:
        if place in reasons:
            continue
        for need in needs:
            if not need.met(run, owner):
                reasons[place] = need.why_not(run, owner)
                break
    return reasons


def beside(name: str, *values: Any, because: str = "") -> Needs:
    """Needs another setting of the same section or choice.

    Args:
        name: the other setting.
        values: the values that it may have; any value but None if none is named. A message
            recommends the first one.
        because: what a message says about another value, e.g. ", which has no antennas".
    """
    if not values:
        return Needs(lambda run, owner: getattr(owner, name) is not None, f"needs {name}: set it")
    return Needs(
        lambda run, owner: getattr(owner, name) in values,
        f'conflicts with {name}="{{owner.{name}}}"{because}: choose {name} "{values[0]}"',
    )


def without(name: str, because: str = ", which replaces it: choose one of them") -> Needs:
    """Needs that another setting of the same section or choice, a number, is not given.

    Args:
        name: the other setting; choices that lack it meet the condition.
        because: what a message says about it, and what to do.
    """
    return Needs(
        lambda run, owner: getattr(owner, name, None) is None,
        f"conflicts with {name}={{owner.{name}:g}}{because}",
    )


@lru_cache(maxsize=512)  # thousands of configurations are read in a sweep
def needs_of(owner: type[Any], kind: type[Needs] = Needs) -> Mapping[str, tuple[Needs, ...]]:
    """The needs of each field of a section or a choice, by name; in the order of the annotation.

    Args:
        owner: class of the section or choice.
        kind: ``Needs``, ``Fits`` or ``Suits``.
    """
    hints = get_type_hints(owner, include_extras=True)
    by_name = {
        name: tuple(n for entry in getattr(hint, "__metadata__", ()) for n in _of_kind(entry, kind))
        for name, hint in hints.items()
    }
    return {name: needs for name, needs in by_name.items() if needs}


def _of_kind(entry: Any, kind: type[Needs]) -> tuple[Needs, ...]:
    """The needs in an entry of an annotation: one, or a tuple of several."""
    return tuple(n for n in (entry if isinstance(entry, tuple) else (entry,)) if type(n) is kind)


CELLS = Needs(
    lambda run, _: run.local is not None,
    'conflicts with algorithm "{run.title}", which is a star with one server: choose '
    '"hfedavg" or "hist"',
)
ONE_SERVER = Needs(
    lambda run, _: run.local is None,
    'conflicts with algorithm "{run.title}", which has cells: choose one without cells',
)
NO_ROUNDS = (
    'conflicts with schedule "{run.schedule.title}", which has no synchronous rounds of one model: '
    'choose schedule "rounds"'
)
ROUNDS = Needs(lambda run, _: run.schedule.work == "rounds", NO_ROUNDS)
"""Rounds in which the server or all cells start and merge together."""
COHORTS = Needs(
    lambda run, _: not run.regime.of_tasks,
    'conflicts with schedule "{run.schedule.title}" as set, in which clients do not train one '
    'model together: choose schedule "rounds"',
)
"""Clients that train one model together, all those of the server or those of a cell."""
TASKS = Needs(
    lambda run, _: run.regime.of_tasks,
    'conflicts with schedule "{run.schedule.title}", which has no requests to clients: choose '
    'schedule "buffered" or "simultaneous"',
)
REQUESTS = Needs(
    lambda run, _: run.regime.of_tasks and run.schedule.work == "requests",
    'conflicts with schedule "{run.schedule.title}", which has no requests to clients: choose '
    'schedule "buffered"',
)
TASK_ROUNDS = Needs(
    lambda run, _: run.regime.of_tasks and run.schedule.work == "task rounds",
    'conflicts with schedule "{run.schedule.title}", which has no rounds of several tasks: choose '
    'schedule "simultaneous"',
)
CLIENT_REQUESTS = Needs(
    lambda run, _: not run.regime.merges_cells,
    'conflicts with algorithm "{run.title}", whose cells replace requests to clients '
    'under schedule "{run.schedule.title}": choose an algorithm without cells',
)
SAMPLED = Needs(
    lambda run, _: run.schedule.work != "requests" or not run.regime.merges_cells,
    'conflicts with schedule "{run.schedule.title}", in which all clients of a cell train: choose '
    'schedule "rounds"',
)
SEVERAL_TASKS = Needs(
    lambda run, _: len(run.settings.task) > 1, "needs several tasks: add tables of tasks"
)
STALE = Needs(
    lambda run, _: run.schedule.work == "requests",
    'conflicts with schedule "{run.schedule.title}", under which no update is stale: choose '
    'schedule "buffered"',
)
SESSIONS = (
    Needs(
        lambda run, _: run.schedule.work == "rounds",
        'conflicts with schedule "{run.schedule.title}", which has no sessions: choose schedule '
        '"rounds"',
    ),
    Needs(lambda run, _: run.sessions is not None, "needs sessions: set sessions"),
)
LINKS = Needs(
    lambda run, _: run.radio,
    'conflicts with delays "{run.delays.title}", which draws the total time of a request: choose '
    'delays "wireless"',
)
"""Latencies that follow from CPU speeds and links."""
CHANNEL = Needs(
    lambda run, _: run.uplink.radio,
    'conflicts with uplink "{run.uplink.title}", which has no radio channel: choose uplink "tdma"',
)
RADIO = (LINKS, CHANNEL)
"""A radio channel that determines latencies."""
DRAWN = Needs(
    lambda run, _: run.channel is None,
    "conflicts with channel={run.channel}, which replaces it: choose one of them",
)
"""Channels that are drawn, not recorded."""
POSITIONS = Needs(
    lambda run, _: run.layout.positions,
    'conflicts with layout "{run.layout.title}", which has no positions: choose layout "disc", '
    '"hexagonal" or "file"',
)
GIVEN = Needs(
    lambda run, _: run.settings.given.network is None,
    "conflicts with network=..., which is given to wirelessfl.run",
)
BUILT = (
    GIVEN,
    Needs(
        lambda run, _: run.settings.network.network is None,
        "conflicts with network={run.settings.network.network}, which replaces it: choose one of "
        "them",
    ),
)
"""A network that settings describe: none is given, and none is named."""
