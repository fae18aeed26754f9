"""Splits with a fixed number of samples per client, computed on demand."""

import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import Stream
from wirelessfl.base.errors import DataError
from wirelessfl.data import split
from wirelessfl.data.client_samples import ClientSamples

STREAM = Stream(1, ("split",))
LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 600))


@given(
    st.integers(1, 12),
    st.integers(1, 60),
    st.sampled_from([("iid", 1.0), ("dirichlet", 0.1), ("dirichlet", 5.0)]),
    st.integers(0, 99),
)
def test_fixed_sizes_with_reuse(clients, samples, kind, seed):
    """Parts have the requested sizes; samples of a class are used equally often, up to one use."""
    labels = Stream(seed, ("labels",)).generator().integers(0, 4, 80)
    parts = split(
        labels,
        clients,
        kind=kind[0],
        alpha=kind[1],
        samples_per_client=samples,
        reuse=True,
        stream=Stream(seed),
    )
    assert [len(part) for part in parts] == [samples] * clients
    used = np.bincount(np.concatenate(parts), minlength=80)
    for label in np.unique(labels):
        own = used[labels == label] if kind[0] == "dirichlet" else used
        assert own.max() - own.min() <= 1
    assert all((np.diff(part) >= 0).all() for part in parts)


def test_fixed_sizes_without_reuse_use_each_sample_at_most_once():
    labels = np.repeat(np.arange(5), 200)
    parts = split(labels, 8, kind="dirichlet", alpha=5.0, samples_per_client=50, stream=Stream(1))
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together) == 400
    with pytest.raises(DataError, match=r"label \d has 200 samples, but this split needs \d+"):
        split(labels, 18, kind="dirichlet", alpha=0.1, samples_per_client=55, stream=Stream(1))
    with pytest.raises(DataError, match="need 1100, but there are only 1000"):
        split(labels, 20, kind="iid", samples_per_client=55, stream=Stream(1))


def test_fixed_sizes_mix_classes_per_client():
    """Class shares of 2000 clients have the mean and variance of a Dirichlet-multinomial."""
    classes, alpha, samples = 4, 0.5, 40
    labels = np.repeat(np.arange(classes), 100)
    parts = split(
        labels,
        2000,
        kind="dirichlet",
        alpha=alpha,
        samples_per_client=samples,
        reuse=True,
        stream=Stream(3),
    )
    shares = np.stack([np.bincount(labels[part], minlength=classes) for part in parts]) / samples
    mean = 1 / classes
    total = alpha * classes
    dirichlet = mean * (1 - mean) / (total + 1)
    expected = dirichlet + (mean * (1 - mean) - dirichlet) / samples
    # Standard errors: 0.0063 for a mean; below 4 % for a variance, 2 % for the average of four.
    assert np.abs(shares.mean(0) - mean).max() < 0.025
    assert shares.var(0).mean() == pytest.approx(expected, rel=0.08)


def reference(labels, clients, samples, alpha, stream):
    """Reference implementation: cut concatenated shuffled passes over each class into parts."""

    def deck(own, passes, shuffles):
        shuffled = [own[shuffles.child(i).generator().permutation(len(own))] for i in passes]
        return np.concatenate(shuffled)

    if alpha is None:
        passes = range(-(-clients * samples // len(labels)))
        order = deck(np.arange(len(labels)), passes, stream.child("pass"))
        return [np.sort(order[i * samples : (i + 1) * samples]) for i in range(clients)]
    classes = np.unique(labels)
    draw = stream.child("mixture").generator()
    counts = draw.multinomial(samples, draw.dirichlet(np.full(len(classes), alpha), size=clients))
    parts = [[] for _ in range(clients)]
    for number, label in enumerate(classes):
        own = np.flatnonzero(labels == label)
        passes = range(counts[:, number].sum() // len(own) + 1)
        order = deck(own, passes, stream.child("class", number))
        ends = np.cumsum(counts[:, number])
        for part, end, count in zip(parts, ends, counts[:, number], strict=True):
            part.append(order[end - count : end])
    return [np.sort(np.concatenate(part)) for part in parts]


@given(
    st.integers(1, 40),
    st.integers(1, 300),
    st.sampled_from([None, 0.1, 5.0]),
    st.integers(0, 99),
)
def test_parts_on_demand_equal_the_reference(clients, samples, alpha, seed):
    """Parts equal the reference in any order of access, by slices and after pickling."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, rng.integers(1, 90)) * 3
    stream = Stream(seed, ("split",))
    settings = {"kind": "iid"} if alpha is None else {"kind": "dirichlet", "alpha": alpha}
    parts = split(
        labels, clients, samples_per_client=samples, reuse=True, stream=stream, **settings
    )
    expected = reference(labels, clients, samples, alpha, stream)
    copy = pickle.loads(pickle.dumps(parts))
    for client in rng.permutation(clients).tolist():
        np.testing.assert_array_equal(parts[client], expected[client])
        np.testing.assert_array_equal(copy[client - clients], expected[client])
    for some in (list(parts), parts[:]):
        assert len(some) == len(parts) == clients
        assert all(np.array_equal(a, b) for a, b in zip(some, expected, strict=True))
    assert [len(part) for part in parts[clients // 2 :: 2]] == [samples] * len(
        range(clients)[clients // 2 :: 2]
    )
    for samples_of in (parts, expected):
        assert ClientSamples.of(samples_of).sizes.tolist() == [samples] * clients
    assert parts[0].dtype == np.int64
    with pytest.raises(IndexError):
        parts[clients]


def test_parts_of_many_blocks_of_clients_equal_the_reference():
    """Parts of 600 clients (three blocks), with counts above 255, equal the reference."""
    stream = Stream(5)
    parts = split(
        LABELS,
        600,
        kind="dirichlet",
        alpha=0.1,
        samples_per_client=300,
        reuse=True,
        stream=stream,
    )
    expected = reference(LABELS, 600, 300, 0.1, stream)
    for client in [599, 0, 255, 256, 257, 511, 512, 3]:
        np.testing.assert_array_equal(parts[client], expected[client])


@pytest.mark.thorough
def test_a_hundred_thousand_clients_take_little_memory():
    """Memory does not grow with the samples per client or the number of accessed parts."""
    labels = np.repeat(np.arange(10), 6000)
    parts = split(
        labels,
        100_000,
        kind="dirichlet",
        alpha=0.1,
        samples_per_client=300,
        reuse=True,
        stream=STREAM,
    )
    assert len(pickle.dumps(parts)) < 5e6
    tracemalloc.start()
    for client in range(0, 100_000, 200):  # samples of all passes, more than are cached
        assert len(parts[client]) == 300
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 1e6 < held < 20e6
    assert len(pickle.dumps(parts)) < 5e6


def test_different_parts_have_different_identities():
    def identity(labels=LABELS, samples=9, seed=1, kind="dirichlet"):
        parts = split(
            labels, 20, kind=kind, samples_per_client=samples, reuse=True, stream=Stream(seed)
        )
        return [np.asarray(thing).tobytes() for thing in parts.identity]

    assert identity() == identity()
    for change in ({"labels": LABELS[::-1]}, {"samples": 8}, {"seed": 2}, {"kind": "iid"}):
        assert identity() != identity(**change)


@pytest.mark.parametrize("alpha", [0.01, 0.3, 5.0])
def test_mixtures_drawn_in_blocks_equal_those_drawn_at_once(alpha, monkeypatch):
    """The split follows NumPy's draws of all mixtures, and then of all counts."""
    monkeypatch.setattr("wirelessfl.data.dealt_samples.BLOCK", 7)
    labels, stream = np.arange(90) % 3, Stream(4, ("blocks",))
    parts = split(
        labels, 50, kind="dirichlet", alpha=alpha, samples_per_client=40, reuse=True, stream=stream
    )
    draw = stream.child("mixture").generator()
    expected = draw.multinomial(40, draw.dirichlet(np.full(3, alpha), size=50))
    order = stream.child("order").generator().permutation(50).tolist()
    assert [np.bincount(labels[parts[i]], minlength=3).tolist() for i in order] == expected[
        order
    ].tolist()
