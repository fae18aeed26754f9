"""Latency of edge rounds and global rounds for linear upload times (HIST, Section IV).

Accesses serve loads of any law, with energy: see :mod:`channels.access`.

Arrays [clients] or [cells] may have leading axes, which index rounds. A value that all clients of
a cell share may be given per cell. If a sub-network has as many clients as cells, an array that
fits both is read as [clients].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from channels.access.access import times
from channels.arguments import checked
from channels.arrays import FloatArray
from channels.links import sending
from channels.loads import Load, usual_amounts
from channels.network import ChannelDraw, Network
from channels.validation import LEAST, MANY, MOST, common_shape


@checked()
def compute_seconds(network: Network, steps: ArrayLike, share: ArrayLike) -> FloatArray:
    """Seconds of local training, H (|p_j| / d) V_0 / F_i: the first term of (17).

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> channels.compute_seconds(network, steps=20, share=0.5).shape
    (4,)

    Args:
        network: network with CPU speeds and cycles per step.
        steps: H, one number, [..., cells] or [..., clients], >= 0.
        share: |p_j| / d, the fraction of the model that is trained; one number, [..., cells] or
            [..., clients], >= 0.

    Returns:
        [..., clients].
    """
    return Load(_cycles(network, steps, share)).ready_seconds(network)


@checked()
def edge_round_seconds(
    draw: ChannelDraw,
    parameters: ArrayLike,
    *,
    model_parameters: float,
    local_steps: ArrayLike,
    seconds_per_bit: ArrayLike,
    bits_per_parameter: float = 32,
    active: ArrayLike | None = None,
) -> FloatArray:
    """Seconds per edge round in each cell, (17).

    max_i { H (|p_j| / d) V_0 / F_i + |p_j| L_0 / d * seconds_per_bit_i }, where L_0 / d is
    ``bits_per_parameter`` and TDMA has seconds_per_bit_i = n_j / R_i.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> seconds = channels.edge_round_seconds(
    ...     draw,
    ...     [1000.0, 0.0],
    ...     model_parameters=2000,
    ...     local_steps=5,
    ...     seconds_per_bit=channels.tdma_seconds_per_bit(draw),
    ... )
    >>> (seconds > 0).tolist()  # the second cell trains nothing
    [True, False]

    Args:
        draw: channels, with their network.
        parameters: |p_j| [..., cells] (or [..., clients]), number of parameters that each client
            trains and uploads, in partitioned and shared layers together; 0 to d.
        model_parameters: d, number of parameters of the full model, > 0.
        local_steps: H, one number, [..., cells] or [..., clients], >= 0.
        seconds_per_bit: [..., clients], e.g. from :func:`channels.tdma_seconds_per_bit`.
        bits_per_parameter: L_0 / d, >= 0.
        active: [..., clients], whether each client participates; the others cause no delay. None
            means all participate.

    Returns:
        [..., cells]; inf for a cell that waits for a client with zero rate.
    """
    count = _per_client(draw.network, "parameters", parameters)
    if count.max(initial=0.0) > model_parameters > 0:
        raise ValueError(
            f"parameters contains {count.max():g}, which exceeds model_parameters="
            f"{model_parameters:g}: a submodel has at most all parameters of the model. Lower "
            "parameters, or give the size of the full model."
        )
    return _edge_round_seconds(
        draw.network,
        parameters,
        model_parameters,
        local_steps,
        seconds_per_bit,
        bits_per_parameter,
        active,
    )


@checked()
def global_round_seconds(
    draw: ChannelDraw,
    parameters: ArrayLike,
    *,
    edge_rounds: int,
    model_parameters: float,
    local_steps: ArrayLike,
    seconds_per_bit: ArrayLike,
    bits_per_parameter: float = 32,
    active: ArrayLike | None = None,
) -> FloatArray:
    """Seconds per global round, (18): E edge rounds of the slowest cell.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> seconds = channels.global_round_seconds(
    ...     draw,
    ...     [1000.0, 1000.0],
    ...     edge_rounds=2,
    ...     model_parameters=2000,
    ...     local_steps=5,
    ...     seconds_per_bit=channels.tdma_seconds_per_bit(draw),
    ... )
    >>> seconds.shape, bool(seconds > 0)
    ((), True)

    Args:
        edge_rounds: E, an integer >= 0; 0 rounds take 0 s. For the other arguments see
            :func:`edge_round_seconds`.

    Returns:
        [...], without the cell axis.
    """
    if not (0 <= edge_rounds <= MANY and edge_rounds == int(edge_rounds)):
        raise ValueError(f"edge_rounds is {edge_rounds}: give an integer >= 0, up to {MANY:,}.")
    seconds = edge_round_seconds(
        draw,
        parameters,
        model_parameters=model_parameters,
        local_steps=local_steps,
        seconds_per_bit=seconds_per_bit,
        bits_per_parameter=bits_per_parameter,
        active=active,
    )
    slowest = seconds.max(axis=-1)
    if not edge_rounds:
        return np.zeros_like(slowest)  # also where a client never ends a round
    return np.asarray(edge_rounds * slowest)


@checked()
def seconds_per_parameter(
    draw: ChannelDraw,
    *,
    model_parameters: float,
    local_steps: ArrayLike,
    seconds_per_bit: ArrayLike,
    bits_per_parameter: float = 32,
    active: ArrayLike | None = None,
) -> FloatArray:
    """Seconds per parameter and edge round in each cell: c_j / E in problem (20).

    max_i { H V_0 / (F_i d) + L_0 / d * seconds_per_bit_i }. Since (17) is linear in |p_j|, the
    product of this value and |p_j| is the result of :func:`edge_round_seconds`. Arguments and
    errors are those of that function.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> seconds = channels.seconds_per_parameter(
    ...     draw,
    ...     model_parameters=2000,
    ...     local_steps=5,
    ...     seconds_per_bit=channels.tdma_seconds_per_bit(draw),
    ... )
    >>> seconds.shape  # per cell, e.g. for solvers.optimize_mask_sizes
    (2,)

    Returns:
        [..., cells]; 0 for a cell without an active client.
    """
    return _edge_round_seconds(
        draw.network,
        1.0,
        model_parameters,
        local_steps,
        seconds_per_bit,
        bits_per_parameter,
        active,
    )


def _edge_round_seconds(
    network: Network,
    parameters: ArrayLike,
    model_parameters: float,
    local_steps: ArrayLike,
    seconds_per_bit: ArrayLike,
    bits_per_parameter: float,
    active: ArrayLike | None,
) -> FloatArray:
    """As :func:`edge_round_seconds`, for any number of parameters."""
    if not LEAST <= model_parameters <= MOST:
        raise ValueError(f"model_parameters is {model_parameters}: give a finite number > 0.")
    if not 0 <= bits_per_parameter <= MOST:
        raise ValueError(f"bits_per_parameter is {bits_per_parameter}: give a finite number >= 0.")
    count = _per_client(network, "parameters", parameters)
    steps = _per_client(network, "local_steps", local_steps)
    per_bit = _times(network, "seconds_per_bit", seconds_per_bit)
    _check_rounds(parameters=parameters, local_steps=local_steps, seconds_per_bit=seconds_per_bit)
    computing = compute_seconds(network, steps, count / model_parameters)
    client = computing + times(bits_per_parameter * count, per_bit)
    client = np.where(sending(network, active, client.shape[:-1]), client, 0.0)
    return network.over_cells(np.maximum, client)


def _cycles(network: Network, steps: ArrayLike, share: ArrayLike) -> FloatArray:
    """CPU cycles per client, H (|p_j| / d) V_0."""
    number, fraction = _per_client(network, "steps", steps), _per_client(network, "share", share)
    _check_rounds(steps=steps, share=share)
    return number * fraction * network.cycles_per_step


def _check_rounds(**values: ArrayLike) -> None:
    """Raise unless the leading axes of the arguments, which index rounds, broadcast."""
    shapes = {name: np.shape(array) for name, array in values.items() if np.ndim(array)}
    leading = (shape[:-1] for shape in shapes.values())
    common_shape(shapes, leading, "arrays whose axes before the last one broadcast")


def _times(network: Network, name: str, values: ArrayLike) -> FloatArray:
    """``values`` [..., clients] >= 0, infinity included, as float64."""
    seconds = np.asarray(values, dtype=np.float64)
    if seconds.shape[-1:] != (network.clients,):
        raise ValueError(
            f"{name} has shape {seconds.shape}: give [..., clients], here (..., {network.clients})."
        )
    bad = ~(seconds >= 0)
    if bad.any():
        raise ValueError(f"{name} contains {seconds[bad].flat[0]}: give numbers >= 0, or infinity.")
    return seconds


def _per_client(network: Network, name: str, values: ArrayLike) -> FloatArray:
    """Expand ``values``, one number, [..., cells] or [..., clients], to [..., clients]."""
    numbers = usual_amounts(name, values)
    if numbers.ndim == 0:
        return np.full(network.clients, numbers)
    if numbers.shape[-1] == network.clients:
        return numbers  # checked first: with as many clients as cells, values are per client
    if numbers.shape[-1] == network.cells:
        return numbers[..., network.cell_of]
    raise ValueError(
        f"{name} has shape {numbers.shape}: give one number, [..., cells] or [..., clients], "
        f"here (..., {network.cells}) or (..., {network.clients})."
    )
