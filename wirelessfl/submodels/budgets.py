"""From what clients can afford to how many neurons they hold.

A width ratio r keeps floor(r W) of the W neurons of every layer, as in HeteroFL and FedRolex; a
budget in bytes or multiplications is the largest such submodel that it pays for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.errors import ConfigError
from wirelessfl.submodels.neurons import NeuronMap

Budget = Literal["width", "bytes", "flops"]

# 0.29 * 100 is 28.999999999999996: shares that mean a whole number of neurons get it.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Levels:
    """The submodels that width ratios give, from the smallest to the full model.

    Args:
        shares: [levels], the least width ratio that gives each; rising.
        widths: [levels, layers], neurons of each layer; none falls from level to level.
        parameters: [levels]; rising.
        multiplications: [levels], by weights, in the forward pass of one sample; never falling.
    """

    shares: FloatArray
    widths: IntArray
    parameters: IntArray
    multiplications: IntArray

    def at(self, share: float) -> int:
        """The level, from 0, of a width ratio: floor(share * W) neurons of each layer of width W.

        With b blocks these are b * floor(share * W/b), so that blocks keep equally many. Where it
        is below one, a layer keeps one neuron (of each block).

        Args:
            share: width ratio in (0, 1].

        Raises:
            ConfigError: share is out of range.
        """
        if not 0 < share <= 1:
            raise ConfigError(
                f"capacities: {share} is no share of the full model: give above 0, up to 1."
            )
        level = int(np.searchsorted(self.shares, share + ROUNDING, side="right")) - 1
        return max(level, 0)

    def within(self, budget: Budget, amount: float) -> int:
        """The largest level, from 0, that a client can afford.

        Args:
            budget: what it can afford: neurons of each layer (``width``, see ``at``), ``bytes`` of
                parameters, at 4 each, or ``flops`` of a sample's forward pass, two a
                multiplication by a weight.
            amount: up to 1 a share of what the full model takes; above 1 bytes or FLOPs
                themselves.

        Raises:
            ConfigError: amount is not positive, above 1 for ``width``, or less than the smallest
                submodel takes.
        """
        if budget == "width":
            return self.at(amount)
        if not 0 < amount < math.inf:
            raise ConfigError(f"capacities: {amount} {budget} buy nothing: give more than 0.")
        costs = 4 * self.parameters if budget == "bytes" else 2 * self.multiplications
        paid = (amount * float(costs[-1]) if amount <= 1 else amount) * (1 + ROUNDING)
        level = int(np.searchsorted(costs, paid, side="right")) - 1
        if level >= 0:
            return level
        if amount > 1:
            raise ConfigError(
                f"capacities: {amount:g} {budget} are less than the smallest submodel takes: give "
                f"at least {costs[0]}."
            )
        min_share = _rounded_up(int(costs[0]) / int(costs[-1]))
        raise ConfigError(
            f"capacities: {amount:g} of the model's {budget} is less than the smallest "
            f"submodel, which has {min_share} of them: give at least {min_share}."
        )


@lru_cache(maxsize=8)  # asked for in every round
def levels_of(neurons: NeuronMap) -> Levels:
    """All submodels of ``neurons`` that one width ratio for all layers gives.

    The ratios are k/W, k = 1..W, of every layer's width (of its blocks' width): at each of them a
    layer gains a neuron, and nowhere between. Where the widest layer's width is a multiple of
    the others', it has one level for each of its neurons.

    Raises:
        ConfigError: the model has no neurons to leave out.
    """
    if not neurons.layers:
        raise ConfigError("the model has no hidden neurons or channels that can be left out.")
    blocks = np.array([layer.blocks for layer in neurons.layers], dtype=np.int64)
    sizes = np.array(neurons.widths, dtype=np.int64) // blocks
    steps = [np.arange(1, size + 1) / size for size in np.unique(sizes)]
    shares = np.unique(np.concatenate(steps))
    kept = np.maximum(np.floor(shares[:, None] * sizes + ROUNDING), 1).astype(np.int64)
    # The first neuron of a narrow layer is there before its share is reached: no new level.
    new = np.diff(kept, axis=0, prepend=0).any(1)
    widths = kept[new] * blocks
    return Levels(shares[new], widths, *submodel_costs(neurons, widths))


def dealt_capacities(capacities: Sequence[float], clients: int, stream: Stream) -> FloatArray:
    """What each client can afford, for the whole run: [clients].

    Each capacity goes to equally many clients, drawn at random; where the number does not divide,
    the first ones of the list go to one client more.

    Args:
        capacities: shares of the full model, or what else ``Levels.within`` takes.
        clients: how many there are, >= 1.
        stream: randomness of the run.

    Raises:
        ConfigError: there are no capacities.
        ValueError: there are no clients.
    """
    if not len(capacities):
        raise ConfigError("capacities is empty: give shares of the full model, e.g. 1,0.5,0.25.")
    if clients < 1:
        raise ValueError(f"clients is {clients}: capacities go to one or more.")
    order = stream.child("capacities").generator().permutation(clients)
    return np.asarray(capacities, dtype=np.float64)[order % len(capacities)]


def submodel_costs(neurons: NeuronMap, widths: IntArray) -> tuple[IntArray, IntArray]:
    """What submodels of these widths cost; thousands of them take milliseconds.

    Args:
        neurons: of the full model.
        widths: [submodels, layers], neurons that each keeps.

    Returns:
        Parameters [submodels]; multiplications by weights in the forward pass of one sample,
        [submodels].
    """
    varied = {where: widths[:, place] * repeat for where, (place, repeat) in neurons.lying.items()}
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
    """``share`` in three digits that do not understate it, so that who gives them gets through."""
    scale = 10.0 ** (2 - math.floor(math.log10(share)))
    return f"{math.ceil(share * scale * (1 - ROUNDING)) / scale:g}"
