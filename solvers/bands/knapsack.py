"""The cheapest items whose values reach a target: a knapsack problem, solved to optimality.

Items are decided one by one, in the order of cost per value. Of the partial choices, those are kept
that no other dominates (at most the cost, at least the value) and whose completion in fractions of
items, a lower bound, costs less than the best choice so far (Nemhauser and Ullmann, Manage. Sci. 15
(1969); with bounds: Pisinger, Oper. Res. 45 (1997)). Values and costs may be any real numbers.
"""

from __future__ import annotations

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray

_MARGIN = 1e-14
"""Relative saving below which choices count as equal: sums have rounding errors."""
_MAX_CHOICES = 100_000


def cheapest(
    costs: FloatArray, values: FloatArray, target: float, cutoff: float
) -> tuple[IntArray | None, float]:
    """Items of least total cost among those whose values sum to ``target`` or more.

    Args:
        costs: [items], >= 0; infinite for items that cannot be chosen.
        values: [items], >= 0.
        target: > 0.
        cutoff: only a total cost below it is of interest.

    Returns:
        Indices of the items, or None if nothing below ``cutoff`` was found; and a lower bound on
        the total cost of any choice, at most ``cutoff``.
    """
    values = np.minimum(values, target)
    usable = np.flatnonzero((costs < cutoff) & (values > 0))
    order = usable[np.argsort(costs[usable] / values[usable], kind="stable")]
    cost, value = costs[order], values[order]
    sum_cost, sum_value = (np.append(0.0, np.cumsum(a)) for a in (cost, value))
    spent, reached = np.zeros(1), np.zeros(1)  # of the partial choices
    history: list[tuple[IntArray, BoolArray]] = []
    best, least, answer = cutoff, np.inf, None
    for item in range(len(order)):
        # Each choice is completed by the next items, up to the first with which it is enough.
        missing = target - reached + sum_value[item]
        stop = np.searchsorted(sum_value, missing)
        live = np.flatnonzero(stop <= len(order))
        last = np.maximum(stop[live] - 1, item)
        total = spent[live] + sum_cost[last + 1] - sum_cost[item]
        if live.size and total.min() < best * (1 - _MARGIN):
            place = int(total.argmin())
            best = float(total[place])
            answer = _items(history, int(live[place]))
            answer += range(item, int(last[place]) + 1)
        relaxed = total - cost[last] * (sum_value[last + 1] - missing[live]) / value[last]
        keep = relaxed < best * (1 - _MARGIN)
        live, relaxed = live[keep], relaxed[keep]
        if len(live) > _MAX_CHOICES:
            ranks = np.argsort(relaxed, kind="stable")
            least = min(least, float(relaxed[ranks[_MAX_CHOICES]]))
            live = live[ranks[:_MAX_CHOICES]]
        if not live.size:
            break
        spent = np.concatenate([spent[live], spent[live] + cost[item]])
        reached = np.concatenate([reached[live], reached[live] + value[item]])
        front = _undominated(spent, reached)
        front = front[reached[front] < target]  # complete ones have been counted above
        history.append((np.tile(live, 2)[front], front >= len(live)))
        spent, reached = spent[front], reached[front]
    bound = max(min(best * (1 - _MARGIN), least), 0.0)
    return (None if answer is None else order[answer]), bound


def _undominated(cost: FloatArray, value: FloatArray) -> IntArray:
    """Indices of the choices for which no other costs at most as much and is worth as much."""
    order = np.lexsort((-value, cost))
    highest = np.maximum.accumulate(value[order])
    more = np.append(True, highest[1:] > highest[:-1])
    front: IntArray = order[more]
    return front


def _items(history: list[tuple[IntArray, BoolArray]], place: int) -> list[int]:
    """The items that were taken for a partial choice, by its place among the present ones."""
    items = []
    for item in range(len(history) - 1, -1, -1):
        parent, taken = history[item]
        if taken[place]:
            items.append(item)
        place = int(parent[place])
    return items
