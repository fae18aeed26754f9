"""Steps of clients: counts, copies and checkpoints."""

import numpy as np
import torch

from wirelessfl.training.steps import StepsDone


def test_steps_are_counted_copied_and_restored():
    steps = StepsDone()
    steps.add(np.array([5, 2]), 3)
    before = steps.copy()
    steps.add(np.array([2]), 4)
    assert steps.of(np.array([2, 3, 5])).tolist() == [7, 0, 3]
    assert before.of(np.array([2, 3, 5])).tolist() == [3, 0, 3]
    assert len(steps) == 2, "clients without steps are not stored"
    again = StepsDone.restored({**steps.tensors(), "other": torch.zeros(1)})
    assert again == steps
    assert StepsDone.restored(StepsDone().tensors()).of(np.array([1])).tolist() == [0]
