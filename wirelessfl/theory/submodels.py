"""Constants of RA-Fed's bounds that follow from masks and compression: coverage and noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from wirelessfl.base.guard import check_number


def minimum_coverage(masks: ArrayLike) -> int:
    """Gamma*, the minimum number of clients at a covered coordinate, over all rounds.

    Args:
        masks: [rounds, clients, P] booleans; all False for a client that does not participate in a
            round.
    """
    values = np.asarray(masks)
    if values.ndim != 3 or values.dtype != np.bool_:
        raise ValueError(
            f"masks has dtype {values.dtype} and shape {list(values.shape)}: give booleans "
            "[rounds, clients, P]."
        )
    covering = values.sum(1)
    if not covering.any():
        raise ValueError("masks contains no True: give masks that cover at least one coordinate.")
    return int(covering[covering > 0].min())


def relative_error(changed: ArrayLike, model: ArrayLike) -> float:
    """The maximum of ||changed - model|| / ||model||.

    It is w_1 for a masked model relative to the (compressed) model, and w_2 for a compressed model
    relative to the model. A zero model that stays zero counts as unchanged.

    Args:
        changed: changed models [..., P].
        model: original models [..., P], broadcast with ``changed``.
    """
    new, old = np.broadcast_arrays(
        np.asarray(changed, dtype=np.float64), np.asarray(model, dtype=np.float64)
    )
    for name, values in (("changed", new), ("model", old)):
        if values.ndim == 0 or values.size == 0 or not np.isfinite(values).all():
            raise ValueError(
                f"{name} has shape {list(values.shape)}: give finite numbers [..., P] for at least "
                "one model."
            )
    apart, norms = np.linalg.norm(new - old, axis=-1), np.linalg.norm(old, axis=-1)
    if ((norms == 0) & (apart > 0)).any():
        raise ValueError(
            "model is 0 but changed is not: give nonzero models, whose relative error is finite."
        )
    return float((apart / np.where(norms > 0, norms, 1.0)).max())


def submodel_noise(mask_error: float, compression_error: float = 0.0) -> float:
    """The submodel noise w^2 = 2 w_1^2 w_2^2 + 2 w_1^2 + w_2^2.

    If a client starts from masked and compressed theta, ||start - theta||^2 is at most
    2 w^2 ||theta||^2.

    Args:
        mask_error: w_1 >= 0, relative error of masking the (compressed) model.
        compression_error: w_2 >= 0, relative error of compressing the model; 0 without compression.
    """
    check_number("mask_error", mask_error)
    check_number("compression_error", compression_error)
    masked, compressed = mask_error**2, compression_error**2
    return 2 * masked * compressed + 2 * masked + compressed
