"""Splits by labels: each client's labels, and its number of samples of each."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from channels import Stream
from wirelessfl.base.errors import DataError
from wirelessfl.config import Config
from wirelessfl.data import SPLITS, split
from wirelessfl.data.picture import label_counts
from wirelessfl.data.splits import DATA_SPLITS
from wirelessfl.data.splits.label_splits import deal_evenly

LABEL_SPLITS = ("two-shard", "half", "partial-overlap", "distinct")

STREAM = Stream(1, ("split",))


def balanced(labels, each):
    """``each`` samples of every label, in a fixed random order."""
    return np.random.default_rng(0).permutation(np.repeat(np.arange(labels), each))


@st.composite
def requests(draw, min_labels=1, min_clients=1):
    """Labels, not numbered consecutively, each with enough samples for all shards."""
    clients = draw(st.integers(min_clients, 12))
    labels = draw(st.integers(min_labels, 30))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    numbers = np.sort(rng.choice(60, labels, replace=False))
    samples = np.repeat(numbers, rng.integers(2 * clients, 4 * clients + 1, labels))
    return rng.permutation(samples), clients, Stream(draw(st.integers(0, 9)), ("data",))


def dealt(labels, clients, kind, stream):
    """Counts [labels, clients] of a split, after checking that it deals every sample once."""
    parts = split(labels, clients, kind=kind, stream=stream)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(labels)))
    assert all(np.all(np.diff(part) > 0) for part in parts)
    again = split(labels, clients, kind=kind, stream=stream)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
    counts = label_counts(parts, labels)
    return counts[counts.any(axis=1)]


def spread(values, axis=None):
    return np.max(np.ptp(values, axis=axis))


@given(requests(min_labels=2))
def test_two_shards_of_two_labels(request_):
    """Each client has two labels; labels have equal numbers of equal shards, to within 1."""
    labels, clients, stream = request_
    counts = dealt(labels, clients, "two-shard", stream)
    assume(len(counts) <= 2 * clients)
    np.testing.assert_array_equal((counts > 0).sum(axis=0), 2)
    holders = (counts > 0).sum(axis=1)
    assert holders.sum() == 2 * clients
    assert spread(holders) <= 1
    assert all(spread(row[row > 0]) <= 1 for row in counts)


@given(requests(min_labels=25))
def test_many_labels_form_batches(request_):
    """If labels outnumber shards, they form batches, and each client has two of the batches."""
    labels, clients, stream = request_
    counts = dealt(labels, clients, "two-shard", stream)
    assume(len(counts) > 2 * clients)
    batches = Counter(tuple(np.flatnonzero(row).tolist()) for row in counts)
    # Batches are identified by their clients, unless two batches have the same clients.
    wanted = min(10, 2 * clients)
    assert len(batches) <= wanted
    if len(batches) == wanted:
        assert spread(list(batches.values())) <= 1
        assert spread([len(holders) for holders in batches]) <= 1
        np.testing.assert_array_equal(np.bincount([c for h in batches for c in h]), 2)
    assert all(spread(row[row > 0]) <= 1 for row in counts)


def test_two_shards_with_the_numbers_of_the_paper():
    """With 10 labels, each has two shards and each client two labels; with 100, clients have 20."""
    labels = balanced(10, 60)
    counts = label_counts(split(labels, 10, kind="two-shard", stream=STREAM), labels)
    np.testing.assert_array_equal(np.sort(counts, axis=1)[:, -3:], [[0, 30, 30]] * 10)
    np.testing.assert_array_equal((counts > 0).sum(axis=0), 2)
    labels = balanced(100, 40)
    for clients, shards in ((10, 2), (20, 4)):
        counts = label_counts(split(labels, clients, kind="two-shard", stream=STREAM), labels)
        assert set(np.unique(counts)) == {0, 40 // shards}
        np.testing.assert_array_equal((counts > 0).sum(axis=0), 20)


@pytest.mark.parametrize("labels", [2, 3, 10])
def test_two_shards_pair_labels_at_random(labels):
    """In 40 splits over 6 clients, all pairs of labels occur, and client 0 has various ones."""
    samples = balanced(labels, 30)
    pairs, of_first = set(), set()
    for number in range(40):
        parts = split(samples, 6, kind="two-shard", stream=STREAM.child(number))
        held = [tuple(np.unique(samples[part]).tolist()) for part in parts]
        pairs |= set(held)
        of_first.add(held[0])
    assert len(pairs) == labels * (labels - 1) // 2
    assert len(of_first) > 1 or labels == 2


@given(requests(min_labels=2, min_clients=2))
def test_halves_of_clients_have_halves_of_labels(request_):
    labels, clients, stream = request_
    counts = dealt(labels, clients, "half", stream)
    kinds = Counter(tuple(np.flatnonzero(column).tolist()) for column in counts.T)
    first, second = kinds
    assert sorted(first + second) == list(range(len(counts)))
    assert abs(len(first) - len(second)) <= 1
    assert abs(kinds[first] - kinds[second]) <= 1
    for held in kinds:
        members = counts[:, counts[held[0]] > 0]
        assert spread(members, axis=1) <= 1  # per label
        assert spread(members.sum(axis=0)) <= 1  # in total


@given(requests(min_labels=3, min_clients=2))
def test_halves_of_clients_overlap_in_few_labels(request_):
    """Each half of the clients has 60 % of the labels; samples of shared labels are halved."""
    labels, clients, stream = request_
    counts = dealt(labels, clients, "partial-overlap", stream)
    total = len(counts)
    kinds = Counter(tuple(np.flatnonzero(column).tolist()) for column in counts.T)
    first, second = kinds
    assert abs(kinds[first] - kinds[second]) <= 1
    assert len(first) == len(second)
    common = set(first) & set(second)
    assert set(first) | set(second) == set(range(total))
    assert len(common) == max(2 * round(0.6 * total) - total, 2 - total % 2)
    assert len(common) < total
    members = counts[min(set(first) - common)] > 0
    halves = [counts[:, members].sum(axis=1), counts[:, ~members].sum(axis=1)]
    assert all(abs(halves[0][label] - halves[1][label]) <= 1 for label in common)
    for half in (members, ~members):
        assert spread(counts[:, half], axis=1) <= 1
        assert spread(counts[:, half].sum(axis=0)) <= 1


@pytest.mark.parametrize("labels", [10, 100])
def test_halves_and_distinct_labels_with_the_numbers_of_the_paper(labels):
    """Clients have 1/2 (half), 6/10 (partial-overlap) or 1/10 (distinct) of the labels."""
    samples = balanced(labels, 40)

    def held(kind):
        counts = label_counts(split(samples, 10, kind=kind, stream=STREAM), samples)
        return counts, (counts > 0).sum(axis=0)

    counts, of_clients = held("half")
    np.testing.assert_array_equal(of_clients, labels // 2)
    assert set(np.unique(counts)) == {0, 8}  # 40 samples for 5 clients
    counts, of_clients = held("partial-overlap")
    np.testing.assert_array_equal(of_clients, labels * 6 // 10)
    holders = (counts > 0).sum(axis=1)
    assert [np.sum(holders == 5), np.sum(holders == 10)] == [labels * 8 // 10, labels * 2 // 10]
    assert set(np.unique(counts)) == {0, 4, 8}
    counts, of_clients = held("distinct")
    np.testing.assert_array_equal(of_clients, labels // 10)
    assert set(np.unique(counts)) == {0, 40}


@pytest.mark.parametrize(("labels", "each", "common"), [(3, 2, 1), (4, 3, 2), (5, 3, 1), (6, 4, 2)])
def test_partial_overlap_shares_at_least_one_label(labels, each, common):
    samples = balanced(labels, 8)
    parts = split(samples, 2, kind="partial-overlap", stream=STREAM)
    first, second = (set(samples[part]) for part in parts)
    assert [len(first), len(second), len(first & second)] == [each, each, common]


@pytest.mark.parametrize("kind", ["half", "partial-overlap"])
def test_halves_of_clients_are_drawn_at_random(kind):
    """In 20 splits over 4 clients, each of the three divisions into pairs occurs."""
    samples, mates = balanced(10, 20), set()
    for number in range(20):
        parts = split(samples, 4, kind=kind, stream=STREAM.child(number))
        held = [set(samples[part]) for part in parts]
        mates.add(tuple(client for client in (1, 2, 3) if held[client] == held[0]))
    assert mates == {(1,), (2,), (3,)}


@given(requests())
def test_distinct_labels_are_not_shared(request_):
    labels, clients, stream = request_
    count = len(np.unique(labels))
    if clients > count:
        with pytest.raises(DataError, match=f"clients is {clients}: .* at most {count} clients"):
            split(labels, clients, kind="distinct", stream=stream)
        return
    counts = dealt(labels, clients, "distinct", stream)
    np.testing.assert_array_equal((counts > 0).sum(axis=1), 1)
    assert spread((counts > 0).sum(axis=0)) <= 1


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(1, 7), st.integers(0, 99))
def test_even_parts_are_even_in_total_and_per_label(labels, parts, seed):
    labels = np.array(labels, dtype=np.int64)
    dealt = deal_evenly(labels, parts, np.random.default_rng(seed))
    counts = np.array([np.bincount(dealt[labels == label], minlength=parts) for label in range(5)])
    assert spread(counts, axis=1) <= 1
    assert spread(counts.sum(axis=0)) <= 1


@pytest.mark.parametrize("kind", LABEL_SPLITS)
def test_labels_of_clients_are_drawn_at_random(kind):
    """The first client's labels depend on the stream, but not on the cells."""
    samples = balanced(10, 20)
    parts = [split(samples, 6, kind=kind, stream=STREAM.child(number)) for number in range(8)]
    assert len({tuple(np.unique(samples[part[0]]).tolist()) for part in parts}) > 1
    in_cells = split(samples, 6, kind=kind, cells=3, stream=STREAM.child(0))
    assert all(np.array_equal(a, b) for a, b in zip(parts[0], in_cells, strict=True))


@pytest.mark.parametrize(
    ("kind", "labels", "clients", "message"),
    [
        ("two-shard", [3] * 9, 2, 'split "two-shard" .* labels has 1. Choose iid'),
        (
            "two-shard",
            [0] * 9 + [4],
            3,
            r"labels \[4\] have 1 samples, .* 3 shards\. Use fewer than 3 clients",
        ),
        ("half", [3] * 9, 2, 'split "half" needs at least 2 labels, but labels has 1'),
        ("half", [3, 4] * 9, 1, 'clients is 1: split "half" needs at least 2 clients'),
        ("partial-overlap", [3, 4] * 9, 2, "needs at least 3 labels, but labels has 2"),
        ("partial-overlap", [3, 4, 5] * 9, 1, 'clients is 1: split "partial-overlap"'),
        ("distinct", [3, 4] * 9, 3, "clients is 3: .* only 2 labels. Use at most 2 clients"),
    ],
)
def test_impossible_requests_are_errors(kind, labels, clients, message):
    with pytest.raises(DataError, match=message):
        split(labels, clients, kind=kind, stream=STREAM)


@pytest.mark.parametrize("kind", LABEL_SPLITS)
def test_min_samples_is_checked(kind):
    samples = np.repeat([0, 1, 2, 3], [8, 8, 8, 16])
    assert min(map(len, split(samples, 4, kind=kind, min_samples=4, stream=STREAM))) >= 4
    with pytest.raises(DataError, match=r"has \d+ samples, fewer than min_samples=10|need 44"):
        split(samples, 4, kind=kind, min_samples=11, stream=STREAM)


def test_a_minimum_that_labels_cannot_meet_is_an_error():
    with pytest.raises(DataError, match=r"has 1 samples, fewer than min_samples=2"):
        split([0, 1, 1, 1, 1], 2, kind="distinct", min_samples=2, stream=STREAM)


@pytest.mark.parametrize("kind", SPLITS)
def test_the_configuration_knows_every_kind(kind):
    found = Config.from_flags("fedavg", split=kind)
    assert found.named("split") == found.split.name == kind
    assert set(SPLITS) == set(DATA_SPLITS.classes())
