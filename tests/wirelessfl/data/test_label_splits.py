"""Splits by labels: which labels and how many samples of each a client holds, over all sizes."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from channels import Stream
from wirelessfl.config import Config
from wirelessfl.data import SPLITS, split
from wirelessfl.data.label_splits import LABEL_SPLITS, deal_evenly
from wirelessfl.data.picture import label_counts
from wirelessfl.data.splits import DATA_SPLITS
from wirelessfl.errors import ConfigError, DataError

STREAM = Stream(1, ("split",))


def balanced(labels, each):
    """``each`` samples of every label, in a fixed random order."""
    return np.random.default_rng(0).permutation(np.repeat(np.arange(labels), each))


@st.composite
def requests(draw, least_labels=1, least_clients=1):
    """Labels with gaps in their numbers, each with as many samples as there can be shards."""
    clients = draw(st.integers(least_clients, 12))
    labels = draw(st.integers(least_labels, 30))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    numbers = np.sort(rng.choice(60, labels, replace=False))
    samples = np.repeat(numbers, rng.integers(2 * clients, 4 * clients + 1, labels))
    return rng.permutation(samples), clients, Stream(draw(st.integers(0, 9)), ("data",))


def dealt(labels, clients, kind, stream):
    """Samples of each label that each client holds [labels, clients], all dealt once."""
    parts = split(labels, clients, kind=kind, stream=stream)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(labels)))
    assert all(np.all(np.diff(part) > 0) for part in parts)
    again = split(labels, clients, kind=kind, stream=stream)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
    counts = label_counts(parts, labels)
    return counts[counts.any(axis=1)]


def spread(values, axis=None):
    return np.max(np.ptp(values, axis=axis))


@given(requests(least_labels=2))
def test_two_shards_of_two_labels(request_):
    """Two labels a client; every label has as many shards, all of one size, give or take one."""
    labels, clients, stream = request_
    counts = dealt(labels, clients, "two-shard", stream)
    assume(len(counts) <= 2 * clients)
    np.testing.assert_array_equal((counts > 0).sum(axis=0), 2)
    holders = (counts > 0).sum(axis=1)
    assert holders.sum() == 2 * clients
    assert spread(holders) <= 1
    assert all(spread(row[row > 0]) <= 1 for row in counts)


@given(requests(least_labels=25))
def test_two_shards_of_two_batches_of_many_labels(request_):
    """More labels than shards: labels that go together make a batch, and a client has two."""
    labels, clients, stream = request_
    counts = dealt(labels, clients, "two-shard", stream)
    assume(len(counts) > 2 * clients)
    batches = Counter(tuple(np.flatnonzero(row).tolist()) for row in counts)
    # Two batches may have the same two clients; else the holders tell batches apart.
    wanted = min(10, 2 * clients)
    assert len(batches) <= wanted
    if len(batches) == wanted:
        assert spread(list(batches.values())) <= 1
        assert spread([len(holders) for holders in batches]) <= 1
        np.testing.assert_array_equal(np.bincount([c for h in batches for c in h]), 2)
    assert all(spread(row[row > 0]) <= 1 for row in counts)


def test_two_shards_of_the_paper():
    """10 labels: two shards a label, two labels a client; 100 labels: 20 labels a client."""
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
    """40 deals to 6 clients: every pair of labels meets, and no client keeps its own."""
    samples = balanced(labels, 30)
    pairs, of_first = set(), set()
    for number in range(40):
        parts = split(samples, 6, kind="two-shard", stream=STREAM.child(number))
        held = [tuple(np.unique(samples[part]).tolist()) for part in parts]
        pairs |= set(held)
        of_first.add(held[0])
    assert len(pairs) == labels * (labels - 1) // 2
    assert len(of_first) > 1 or labels == 2


@given(requests(least_labels=2, least_clients=2))
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
        assert spread(members, axis=1) <= 1  # of each label
        assert spread(members.sum(axis=0)) <= 1  # in all


@given(requests(least_labels=3, least_clients=2))
def test_halves_of_clients_overlap_in_few_labels(request_):
    """Each half of the clients has 60 % of the labels; samples in common go half and half."""
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
    own = counts[min(set(first) - common)] > 0
    halves = [counts[:, own].sum(axis=1), counts[:, ~own].sum(axis=1)]
    assert all(abs(halves[0][label] - halves[1][label]) <= 1 for label in common)
    for half in (own, ~own):
        assert spread(counts[:, half], axis=1) <= 1
        assert spread(counts[:, half].sum(axis=0)) <= 1


@pytest.mark.parametrize("labels", [10, 100])
def test_halves_of_the_paper(labels):
    """Half: 5 or 50 labels a client; 60 % with 20 % in common: 6 or 60; distinct: 1 or 10."""
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
def test_few_labels_overlap_in_one_at_least(labels, each, common):
    samples = balanced(labels, 8)
    parts = split(samples, 2, kind="partial-overlap", stream=STREAM)
    first, second = (set(samples[part]) for part in parts)
    assert [len(first), len(second), len(first & second)] == [each, each, common]


@pytest.mark.parametrize("kind", ["half", "partial-overlap"])
def test_which_clients_make_a_half_is_drawn(kind):
    """20 deals to 4 clients: each of the three ways to pair them turns up."""
    samples, mates = balanced(10, 20), set()
    for number in range(20):
        parts = split(samples, 4, kind=kind, stream=STREAM.child(number))
        held = [set(samples[part]) for part in parts]
        mates.add(tuple(client for client in (1, 2, 3) if held[client] == held[0]))
    assert mates == {(1,), (2,), (3,)}


@given(requests())
def test_distinct_clients_share_no_label(request_):
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
def test_even_parts_are_even_in_all_and_of_each_label(labels, parts, seed):
    labels = np.array(labels, dtype=np.int64)
    dealt = deal_evenly(labels, parts, np.random.default_rng(seed))
    counts = np.array([np.bincount(dealt[labels == label], minlength=parts) for label in range(5)])
    assert spread(counts, axis=1) <= 1
    assert spread(counts.sum(axis=0)) <= 1


@pytest.mark.parametrize("kind", LABEL_SPLITS)
def test_who_and_what_come_together_is_drawn(kind):
    """The first client's labels, and its samples, differ between streams; cells do not matter."""
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
            r"labels \[4\] have 1 samples, .* 3 shards. .*\(3\)",
        ),
        ("half", [3] * 9, 2, 'split "half" needs at least 2 labels, and labels has 1'),
        ("half", [3, 4] * 9, 1, 'clients is 1: split "half" needs two halves'),
        ("partial-overlap", [3, 4] * 9, 2, "needs at least 3 labels, and labels has 2"),
        ("partial-overlap", [3, 4, 5] * 9, 1, 'clients is 1: split "partial-overlap"'),
        ("distinct", [3, 4] * 9, 3, "clients is 3: .*there are 2 labels. Use at most 2 clients"),
    ],
)
def test_impossible_requests_are_errors(kind, labels, clients, message):
    with pytest.raises(DataError, match=message):
        split(labels, clients, kind=kind, stream=STREAM)


@pytest.mark.parametrize("kind", LABEL_SPLITS)
def test_they_obey_the_other_settings(kind):
    """A least size is checked; fixed sizes and re-use are for other kinds."""
    samples = np.repeat([0, 1, 2, 3], [8, 8, 8, 16])
    assert min(map(len, split(samples, 4, kind=kind, min_samples=4, stream=STREAM))) >= 4
    with pytest.raises(DataError, match=r"has \d+ samples, fewer than min_samples=10|need 44"):
        split(samples, 4, kind=kind, min_samples=11, stream=STREAM)
    with pytest.raises(DataError, match=f"is for iid and dirichlet, and split is '{kind}'"):
        split(samples, 4, kind=kind, samples_per_client=2, stream=STREAM)
    with pytest.raises(DataError, match="reuse needs samples_per_client"):
        split(samples, 4, kind=kind, reuse=True, stream=STREAM)


def test_a_least_size_that_labels_cannot_give_is_an_error():
    with pytest.raises(DataError, match=r"has 1 samples, fewer than min_samples=2"):
        split([0, 1, 1, 1, 1], 2, kind="distinct", min_samples=2, stream=STREAM)


@pytest.mark.parametrize("kind", SPLITS)
def test_the_configuration_knows_every_kind(kind):
    found = Config.from_flags("fedavg", split=kind)
    assert found.split["name"] == found.choices.split.name == kind
    assert set(SPLITS) == set(DATA_SPLITS.classes())
    with pytest.raises(ConfigError, match=f"split '{kind}-' is unknown. Do you mean '{kind}'"):
        Config.from_flags("fedavg", split=f"{kind}-")
