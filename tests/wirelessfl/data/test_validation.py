"""Validation sets: held-out samples and the samples that remain for clients."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.streams import Stream
from wirelessfl.data.client_samples import ListedSamples
from wirelessfl.data.fixed_sizes import deal_fixed_sizes
from wirelessfl.data.validation import RemainingSamples, hold_out
from wirelessfl.errors import DataError

STREAM = Stream(3, ("validation",))


@given(st.integers(2, 400), st.floats(0.01, 0.99), st.integers(0, 5))
def test_the_requested_fraction_is_held_out_at_random(samples, fraction, seed):
    wanted = round(fraction * samples)
    if not 0 < wanted < samples:
        with pytest.raises(DataError, match="validation_fraction is"):
            hold_out(samples, fraction, Stream(seed))
        return
    held = hold_out(samples, fraction, Stream(seed))
    assert len(held) == wanted
    assert (np.diff(held) > 0).all()
    assert 0 <= held[0] <= held[-1] < samples
    assert np.array_equal(held, hold_out(samples, fraction, Stream(seed)))
    may_coincide = wanted in (1, samples - 1) or samples < 20
    assert may_coincide or not np.array_equal(held, hold_out(samples, fraction, Stream(seed + 1)))


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=120), st.floats(0.05, 0.6), st.integers(0, 5)
)
def test_groups_are_held_out_whole(groups, fraction, seed):
    """Whole groups are held out until they have the requested number of samples."""
    groups, wanted = np.array(groups), round(fraction * len(groups))
    if not wanted:
        return
    if wanted > len(groups) - np.bincount(groups)[np.unique(groups)].min():
        with pytest.raises(DataError, match="leaves none"):  # in every order of the groups
            hold_out(len(groups), fraction, Stream(seed), groups)
        return
    try:
        held = hold_out(len(groups), fraction, Stream(seed), groups)
    except DataError:  # the requested number needs all groups in the drawn order
        sizes = np.bincount(groups)
        assert len(groups) - wanted < sizes.max()
        return
    inside = set(groups[held].tolist())
    assert np.array_equal(held, np.flatnonzero(np.isin(groups, list(inside))))
    assert len(held) >= wanted
    sizes = [np.count_nonzero(groups == group) for group in inside]
    assert len(held) - max(sizes) < wanted


def test_every_sample_and_group_may_be_held_out():
    """In 400 draws of 3 of 10, each is held out 120 times, within 5 standard errors of 9.2."""
    single, whole = np.zeros(10), np.zeros(10)
    for seed in range(400):
        single[hold_out(10, 0.3, Stream(seed))] += 1
        whole[np.unique(hold_out(30, 0.3, Stream(seed), np.repeat(range(10), 3)) // 3)] += 1
    for counts in (single, whole):
        assert counts.sum() == 1200
        assert (abs(counts - 120) < 5 * 9.2).all()


@pytest.mark.parametrize(
    ("samples", "fraction", "groups", "message"),
    [
        (100, 0.004, None, r"holds out none of the 100 training samples\. Give at least 0\.01"),
        (100, 0.999, None, "leaves none of the 100 training samples to train on"),
        (4, 0.5, [7, 7, 7, 7], "leaves none of the 4"),
        (4, 0.5, [7, 7, 7], "give one integer for each of the 4"),
    ],
)
def test_impossible_fractions_are_refused(samples, fraction, groups, message):
    with pytest.raises(DataError, match=message):
        hold_out(samples, fraction, STREAM, groups)


def test_clients_get_only_remaining_samples():
    """Parts, listed or computed on demand, refer to remaining samples only, also after pickling."""
    labels = np.arange(90) % 3
    held = hold_out(90, 0.2, STREAM)
    remaining = np.delete(np.arange(90), held)
    dealt = deal_fixed_sizes(labels[remaining], 40, 5, 0.5, True, STREAM)
    listed = ListedSamples([np.array([0, 3]), np.array([1, 2, 71])])
    for samples in (dealt, listed):
        made = pickle.loads(pickle.dumps(RemainingSamples(samples, remaining)))
        assert len(made) == len(samples)
        assert made.sizes.tolist() == samples.sizes.tolist() == [len(each) for each in made]
        assert not np.isin(np.concatenate(made[:]), held).any()
        for client in (0, 1, -1):
            assert made[client].tolist() == [remaining[index] for index in samples[client]]
            assert made[client].tolist() == sorted(made[client].tolist())
    other = RemainingSamples(listed, remaining + 1)
    assert repr(other.identity) != repr(RemainingSamples(listed, remaining).identity)
