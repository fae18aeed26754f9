"""When an algorithm's server merges: in rounds, by buffers, or in common rounds of several tasks.

Algorithms say WHAT is learnt. What some of them also say of WHEN stands here, in one value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from channels.streams import Stream
from wirelessfl.assignment import Assignment


@dataclass(frozen=True)
class Reallocation:
    """How requests are dealt out anew among tasks, by spread (Askin et al., Algorithm 3).

    Args:
        period: updates between two reallocations, in M sum R_m.
        updates: V, the latest updates of a task whose spread is measured.
    """

    period: float
    updates: int


@dataclass(frozen=True)
class Buffering:
    """Asynchronous requests, and merges whenever a task's buffer is full.

    Args:
        requests: R_m, training requests of a task that are out at a time.
        buffer: b_m, updates that make a merge.
        scales: whether a task with more requests gets a larger buffer, R / b being kept.
        floor: minimum number of requests of a task when those of an ended one are dealt out.
        reallocation: how requests are dealt out anew; None: each task keeps its R_m.
    """

    requests: int
    buffer: int = 1
    scales: bool = False
    floor: int = 1
    reallocation: Reallocation | None = None


@dataclass(frozen=True)
class CommonRounds:
    """Rounds of several tasks at once, on disjoint clients, with a common end.

    Args:
        first: k, updates of a task that are awaited in a round; 0: all of them.
        assignment: who trains what, made from the numbers of clients and tasks and a stream.
    """

    first: int
    assignment: Callable[[int, int, Stream], Assignment]


@dataclass(frozen=True)
class Timing:
    """When a server merges; synchronous rounds of one model unless one of the two is given.

    Args:
        buffering: asynchronous requests of one model or several.
        common_rounds: rounds of several models with a common end.
        max_tasks: maximum number of models that are trained at once; None for no limit.
        shared: settings of the algorithm that hold for all tasks; a task has none of its own.
    """

    buffering: Buffering | None = None
    common_rounds: CommonRounds | None = None
    max_tasks: int | None = 1
    shared: tuple[str, ...] = ()

    @property
    def rounds(self) -> bool:
        """Whether it has synchronous rounds of one model."""
        return self.buffering is None and self.common_rounds is None
