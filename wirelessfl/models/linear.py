"""A linear classifier: what the published code of dynamic clients trains on MNIST (784-10)."""

from __future__ import annotations

from collections.abc import Sequence

from wirelessfl.models.fcnn import FCNN


class LinearClassifier(FCNN):
    """One layer, no hidden one: 7,850 parameters on 28x28 images with ten classes.

    Args:
        input_shape: shape of one sample; it is flattened.
        classes: outputs.
    """

    def __init__(self, input_shape: Sequence[int], classes: int) -> None:
        super().__init__(input_shape, classes, hidden=())
