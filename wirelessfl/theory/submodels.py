"""What masks and compression mean for the bounds of RA-Fed: coverage, and submodel noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from wirelessfl.numbers import check_number


def minimum_coverage(masks: ArrayLike) -> int:
    """Gamma*, the fewest clients at a coordinate, over the rounds and coordinates with any.

    Args:
        masks: [rounds, clients, P] booleans; all False for a client that takes no part in a round.

    Raises:
        ValueError: the shape or type is another, or no mask covers anything.
    """
    given = np.asarray(masks)
    if given.ndim != 3 or given.dtype != np.bool_:
        raise ValueError(
            f"masks is {given.dtype} of shape {list(given.shape)}: give booleans "
            "[rounds, clients, P]."
        )
    covering = given.sum(1)
    if not covering.any():
        raise ValueError("masks covers no coordinate in any round: give at least one True.")
    return int(covering[covering > 0].min())


def relative_error(changed: ArrayLike, model: ArrayLike) -> float:
    """The largest ||changed - model|| / ||model||.

    That is w_1 for a masked model beside the (compressed) model, w_2 for a compressed model beside
    the model. A zero model that stays zero counts as unchanged.

    Args:
        changed: [..., P].
        model: [..., P], broadcast with ``changed``.

    Raises:
        ValueError: a number is not finite, there are none, or a zero model was changed.
    """
    new, old = np.broadcast_arrays(
        np.asarray(changed, dtype=np.float64), np.asarray(model, dtype=np.float64)
    )
    for name, values in (("changed", new), ("model", old)):
        if values.ndim == 0 or values.size == 0 or not np.isfinite(values).all():
            raise ValueError(
                f"{name} has shape {list(values.shape)}: give finite numbers [..., P], at least "
                "one model."
            )
    apart, norms = np.linalg.norm(new - old, axis=-1), np.linalg.norm(old, axis=-1)
    if ((norms == 0) & (apart > 0)).any():
        raise ValueError("model is 0 and changed is not: no relative error bounds that.")
    return float((apart / np.where(norms > 0, norms, 1.0)).max())


def submodel_noise(mask_error: float, compression_error: float = 0.0) -> float:
    """w^2 = 2 w_1^2 w_2^2 + 2 w_1^2 + w_2^2.

    Where a client starts from masked and compressed theta, ||start - theta||^2 is at most
    2 w^2 ||theta||^2.

    Args:
        mask_error: w_1 >= 0, of masking, relative to the (compressed) model.
        compression_error: w_2 >= 0, of compression, relative to the model; 0 without.

    Raises:
        ValueError: one is negative or not finite.
    """
    check_number("mask_error", mask_error)
    check_number("compression_error", compression_error)
    masked, compressed = mask_error**2, compression_error**2
    return 2 * masked * compressed + 2 * masked + compressed
