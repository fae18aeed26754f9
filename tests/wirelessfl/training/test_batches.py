"""Mini-batches pass over each client's samples in random order."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from channels.streams import Stream
from tests.wirelessfl.training.jobs import samples, samples_of
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.executor import TrainingData


@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 50), st.integers(1, 25))
def test_each_pass_is_a_permutation_of_the_samples(size, batch_size, first, steps):
    """The batches of a pass permute the client's samples, and depend only on the step."""
    own = np.arange(size) * 3 + 5
    source = BatchSource([own], batch_size, Stream(1))
    batches = source.draw(np.array([0]), np.array([first]), steps)
    per_pass = -(-size // batch_size)
    from_start = source.draw(np.array([0]), np.array([0]), first + steps)
    assert torch.equal(batches.index[0], from_start.index[0, first:])
    assert torch.equal(batches.keys[0], from_start.keys[0, first:])
    drawn = [
        row[w > 0].tolist()
        for row, w in zip(*map(list, (from_start.index[0], from_start.weight[0])), strict=True)
    ]
    for number in range((first + steps) // per_pass):
        of_pass = [i for b in drawn[number * per_pass : (number + 1) * per_pass] for i in b]
        assert sorted(of_pass) == own.tolist()
    for row in from_start.weight[0]:
        assert float(row.sum()) == pytest.approx(1.0)


def test_batches_come_from_the_streams_of_client_and_pass():
    """A pass is shuffled by its own generator; the keys are those of the dropout stream."""
    stream, own = Stream(7, ("run",)), np.arange(23) + 100
    batches = BatchSource([own[:5], own], 4, stream).draw(np.array([1]), np.array([4]), 9)
    shuffles = stream.child("client", 1, "batches")
    orders = [own[shuffles.generator(number).permutation(23)] for number in range(3)]
    steps = [order[at : at + 4].tolist() for order in orders for at in range(0, 23, 4)]
    drawn = zip(batches.index[0], batches.weight[0], strict=True)
    assert [row[weight > 0].tolist() for row, weight in drawn] == steps[4:13]
    keys = batches.keys[0].numpy().view(np.uint32)
    dropout = stream.child("client", 1, "dropout").key() & 0xFFFFFFFF
    assert keys.tolist() == [[dropout, step] for step in range(4, 13)]


def test_batches_do_not_depend_on_the_other_clients():
    source = BatchSource(samples_of([50, 30, 70]), 16, Stream(3))
    steps = np.array([4, 4, 4])
    together = source.draw(np.arange(3), steps, 5)
    alone = source.draw(np.array([2]), steps[2:], 5)
    assert torch.equal(together.index[2], alone.index[0])
    assert torch.equal(together.keys[2], alone.keys[0])
    assert not torch.equal(together.index[1], together.index[2])


def test_inputs_are_stored_contiguously():
    """Otherwise every batch would copy all samples."""
    x, y = samples((4, 5, 3))
    source = BatchSource([np.arange(9)], 4, Stream(3))
    data = TrainingData(x.permute(0, 3, 1, 2), y, source)
    assert data.inputs.is_contiguous()
    rows = torch.tensor([7, 2])
    assert torch.equal(data.batch(rows)[0], x.permute(0, 3, 1, 2)[rows])
    assert TrainingData(x, y, source).inputs is x
