"""A linear classifier, used on MNIST (784-10) by the published code for dynamic clients."""

from __future__ import annotations

from collections.abc import Sequence

from wirelessfl.models.fcnn import FCNN


class LinearClassifier(FCNN):
    """Linear classifier: 7,850 parameters on 28x28 images with ten classes.

    Args:
        input_shape: shape of one sample, which is flattened.
        classes: number of outputs.
    """

    def __init__(self, input_shape: Sequence[int], classes: int) -> None:
        super().__init__(input_shape, classes, hidden=())
