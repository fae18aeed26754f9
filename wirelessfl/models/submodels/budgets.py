"""Budgets: the number of neurons that each client can train, from its capacity.

A width ratio r keeps floor(r W) of the W neurons of every layer, as in HeteroFL and FedRolex. A
budget in bytes or FLOPs gives the largest such submodel within the budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels.neurons import NeuronMap

Budget = Literal["width", "bytes", "flops"]

# 0.29 * 100 is 28.999999999999996 in float64, but must give 29 neurons.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Levels:
    """The submodels given by width ratios, from the smallest to the full model.

    Args:
        shares: [levels], the minimum width ratio of each level; increasing.
        widths: [levels, layers], neurons of each layer; not decreasing.
        parameters: [levels], number of parameters; increasing.
        multiplications: [levels], multiplications by weights in the forward pass of one sample; not
            decreasing.
    """

    shares: FloatArray
    widths: IntArray
    parameters: IntArray
    multiplications: IntArray

    def at(self, share: float) -> int:
        """The level, from 0, of a width ratio: floor(share * W) neurons of each layer of width W.

        A layer with b blocks keeps b * floor(share * W/b) neurons, the same number from each block.
        If this is 0, it keeps one neuron (from each block).

        Args:
            share: width ratio in (0, 1].
        """
        if not 0 < share <= 1:
            raise ConfigError(
                f"capacities: {share} is not a fraction of the full model: give a number above 0 "
                "and at most 1."
            )
        level = int(np.searchsorted(self.shares, share + ROUNDING, side="right")) - 1
        return max(level, 0)

    def within(self, budget: Budget, amount: float) -> int:
        """The largest level, from 0, within a client's budget.

        Args:
            budget: unit of the budget: neurons of each layer (``width``, see ``at``), ``bytes`` of
                parameters (4 per parameter), or ``flops`` of a sample's forward pass (two per
                multiplication by a weight).
            amount: a value up to 1 is a fraction of the full model's cost; a value above 1 is in
                bytes or FLOPs.
        """
        if budget == "width":
            return self.at(amount)
        if not 0 < amount < math.inf:
            raise ConfigError(
                f"capacities: {amount} {budget} is not a valid budget: give a finite number above "
                "0."
            )
        costs = 4 * self.parameters if budget == "bytes" else 2 * self.multiplications
        limit = (amount * float(costs[-1]) if amount <= 1 else amount) * (1 + ROUNDING)
        level = int(np.searchsorted(costs, limit, side="right")) - 1
        if level >= 0:
            return level
        if amount > 1:
            raise ConfigError(
                f"capacities: {amount:g} {budget} is less than the smallest submodel needs: give "
                f"at least {costs[0]}."
            )
        min_share = _rounded_up(int(costs[0]) / int(costs[-1]))
        raise ConfigError(
            f"capacities: the smallest submodel needs a fraction {min_share} of the model's "
            f"{budget}, more than {amount:g}: give at least {min_share}."
        )


@lru_cache(maxsize=8)  # called in every round
def levels_of(neurons: NeuronMap) -> Levels:
    """All submodels of ``neurons`` that have one width ratio for all layers.

    The ratios are k/W, k = 1..W, for the width W of every layer (or of its blocks); at each ratio a
    layer gains a neuron. If the widest layer's width is a multiple of all other widths, there is
    one level per neuron of that layer.
    """
    if not neurons.layers:
        raise ConfigError(
            "the model has no hidden neurons or channels that a submodel can omit: choose another "
            "model."
        )
    blocks = np.array([layer.blocks for layer in neurons.layers], dtype=np.int64)
    sizes = np.array(neurons.widths, dtype=np.int64) // blocks
    steps = [np.arange(1, size + 1) / size for size in np.unique(sizes)]
    shares = np.unique(np.concatenate(steps))
    kept = np.maximum(np.floor(shares[:, None] * sizes + ROUNDING), 1).astype(np.int64)
    # A layer always keeps at least one neuron, so its first ratio may not start a new level.
    new = np.diff(kept, axis=0, prepend=0).any(1)
    widths = kept[new] * blocks
    return Levels(shares[new], widths, *submodel_costs(neurons, widths))


def dealt_capacities(
    capacities: Sequence[float], clients: int, stream: Stream, who: IntArray | None = None
) -> FloatArray:
    """Assign capacities to clients at random, for the whole run: [clients].

    Each capacity is assigned to the same number of clients. If the number of clients is not
    divisible by the number of capacities, the first ones in the list get one more client each.

    Args:
        capacities: fractions of the full model, or other amounts for ``Levels.within``.
        clients: number of clients, >= 1.
        stream: the run's random stream.
        who: [who], clients whose capacities are returned; None for all.
    """
    if not len(capacities):
        raise ConfigError("capacities is empty: give fractions of the full model, e.g. 1,0.5,0.25.")
    if clients < 1:
        raise ValueError(f"clients is {clients}: give a number >= 1.")
    dealt = _dealt(len(capacities), clients, stream.child("capacities"))
    return np.array(capacities, dtype=np.float64).take(dealt if who is None else dealt[who])


def mean_reciprocal(widths: Sequence[float], clients: int) -> float:
    """Mean of 1/width over the clients, if each width is assigned to an equal number of them.

    It is 1 for full models, and for widths of the same mean it is least if all are equal.

    Args:
        widths: width ratios in (0, 1], as ``capacities`` of ``dealt_capacities``.
        clients: number of clients, >= 1.
    """
    counts = np.bincount(np.arange(clients) % len(widths), minlength=len(widths))
    return float((counts / np.asarray(widths, dtype=np.float64)).sum() / clients)


@lru_cache(maxsize=8)  # called in every round
def _dealt(capacities: int, clients: int, stream: Stream) -> NDArray[np.integer[Any]]:
    """Index of each client's capacity, [clients]."""
    order = stream.generator().permutation(np.arange(clients, dtype=np.int32))
    return (order % capacities).astype(np.min_scalar_type(capacities - 1))


def submodel_costs(neurons: NeuronMap, widths: IntArray) -> tuple[IntArray, IntArray]:
    """Compute the costs of submodels with given widths; thousands take milliseconds.

    Args:
        widths: [submodels, layers], number of neurons that each submodel keeps.

    Returns:
        Parameters [submodels], and multiplications by weights in the forward pass of one sample,
        [submodels].
    """
    varied = {axis: widths[:, layer] * repeat for axis, (layer, repeat) in neurons.by_axis.items()}
    parameters = np.zeros(len(widths), dtype=np.int64)
    multiplications = np.zeros_like(parameters)
    for name, shape in neurons.spec.shapes.items():
        entries = np.ones_like(parameters)
        for axis, length in enumerate(shape):
            entries *= varied.get((name, axis), length)
        parameters += entries
        if len(shape) > 1:
            multiplications += entries * neurons.uses.get(name, 1)
    return parameters, multiplications


def _rounded_up(share: float) -> str:
    """``share`` rounded up to three digits, so that the printed value is accepted as input."""
    scale = 10.0 ** (2 - math.floor(math.log10(share)))
    return f"{math.ceil(share * scale * (1 - ROUNDING)) / scale:g}"
