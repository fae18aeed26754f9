"""Partitions of the training set as they are stored, and samples that are held out."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import Stream
from wirelessfl.base.errors import DataError
from wirelessfl.data import partition, split
from wirelessfl.data.client_samples import ClientSamples, ListedSamples, RemainingSamples, hold_out
from wirelessfl.data.dealt_samples import deal_fixed_sizes
from wirelessfl.data.partition import COUNTED, ClientPartition
from wirelessfl.data.picture import label_counts

LABELS = Stream(1).generator().integers(0, 7, 600)


@pytest.mark.parametrize("kind", ["noniid", "dirichlet", "iid"])
def test_samples_and_counts_are_those_of_the_split(kind):
    dealt = split(LABELS, 12, kind=kind, stream=Stream(1))
    found = ClientPartition.of_arrays(ClientPartition.of(dealt, LABELS, 7).arrays())
    assert len(found) == 12
    for client, mine in enumerate(dealt):
        assert found.indices(client).tolist() == found[client].tolist() == list(mine)
    assert np.array_equal(found.counts.T, label_counts(dealt, LABELS, 7))
    assert repr(found) == "ClientPartition(12 clients, 600 samples)"
    assert [list(mine) for mine in found[2:4]] == [list(mine) for mine in dealt[2:4]]


class OnDemand(ClientSamples):
    """Two samples of each client, which are computed on demand."""

    def __init__(self, clients):
        self.clients, self.asked = clients, 0

    @property
    def sizes(self):
        return np.broadcast_to(np.int64(2), self.clients)

    identity = ()

    def __len__(self):
        return self.clients

    def _samples_of(self, client):
        self.asked += 1
        return np.array([client % 600, (client + 1) % 600])


@pytest.mark.parametrize("clients", [COUNTED + 1, 10**13])
def test_many_clients_on_demand_are_counted_only_at_the_beginning(clients):
    samples = OnDemand(clients)
    found = ClientPartition.of(samples, LABELS, 7)
    assert samples.asked == COUNTED
    assert found.counts.shape == (COUNTED, 7)
    assert (len(found), found.known) == (clients, False)
    assert np.array_equal(np.flatnonzero(found.counts[3]), np.unique(LABELS[3:5]))
    with pytest.raises(DataError, match="were not stored"):
        found.indices(0)


def test_large_partitions_are_not_stored_unless_they_were_given(monkeypatch):
    monkeypatch.setattr(partition, "LARGEST_BYTES", 1000)
    many = [np.zeros(300, dtype=np.int64)] * 2
    assert not ClientPartition.of(many, LABELS, 7).known
    assert ClientPartition.of(many, LABELS, 7, whole=True).known


@pytest.mark.parametrize("labels", [LABELS / 2, np.stack([LABELS, LABELS], axis=1)])
def test_other_labels_are_not_counted(labels, tmp_path):
    found = ClientPartition.of([[0, 1], [2]], labels, 7)
    assert found.counts is None
    assert found.indices(1).tolist() == [2]
    with pytest.raises(DataError, match="labels are not classes"):
        found.draw(tmp_path / "figure")


def test_clients_are_checked():
    found = ClientPartition.of([[0, 1], [2]], LABELS, 7)
    for client in (2, -3):
        with pytest.raises(DataError, match=f"client is {client}: choose one from 0 to 1"):
            found.indices(client)
    assert found.indices(-1).tolist() == [2]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("clients", "classes"), [(3, 7), (60, 30)])
def test_figures_are_drawn(clients, classes, tmp_path):
    labels = Stream(2).generator().integers(0, classes, 600)
    dealt = split(labels, clients, kind="dirichlet", stream=Stream(1))
    files = ClientPartition.of(dealt, labels, classes).draw(tmp_path / "labels")
    assert [file.name for file in files] == ["labels.png", "labels.pdf"]
    assert all(file.stat().st_size > 2000 for file in files)


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
