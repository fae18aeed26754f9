"""Splits: properties for many sizes, and statistics with stated standard errors."""

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from channels import Stream, even_cells
from wirelessfl.base.errors import DataError
from wirelessfl.data import SPLITS, split
from wirelessfl.data.picture import label_counts

STREAM = Stream(1, ("split",))
LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 600))


@st.composite
def requests(draw):
    """Labels and settings that are valid for all kinds except natural."""
    clients = draw(st.integers(1, 12))
    cells = draw(st.integers(1, clients))
    shards = draw(st.integers(1, 3))
    # A cell has n // cells samples or more, and ceil(clients / cells) clients or fewer.
    required = shards * -(-clients // cells) * cells
    n = draw(st.integers(required, required + 150))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    labels = rng.integers(0, draw(st.integers(1, 7)), n)
    stream = Stream(draw(st.integers(0, 9)), ("data",))
    return labels, {"clients": clients, "cells": cells, "shards": shards, "stream": stream}


def dealt(parts):
    return np.sort(np.concatenate(parts))


@given(requests(), st.sampled_from(["iid", "noniid", "cell-iid", "cell-shards", "dirichlet"]))
def test_every_sample_is_dealt_once(request_, kind):
    labels, settings = request_
    if kind == "dirichlet":  # with few samples most draws leave a client without any
        labels = np.tile(labels, 20)
    parts = split(labels, kind=kind, alpha=5.0, **settings)
    assert len(parts) == settings["clients"]
    np.testing.assert_array_equal(dealt(parts), np.arange(len(labels)))
    assert all(np.all(np.diff(part) > 0) for part in parts)
    again = split(torch.from_numpy(labels), kind=kind, alpha=5.0, **settings)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))


@given(requests())
def test_iid_sizes_differ_by_at_most_one(request_):
    labels, settings = request_
    sizes = [len(part) for part in split(labels, kind="iid", **settings)]
    assert max(sizes) - min(sizes) <= 1


@given(requests())
def test_noniid_clients_hold_whole_shards(request_):
    """Sorted by label, a client's samples form at most ``shards`` runs."""
    labels, settings = request_
    clients, shards = settings["clients"], settings["shards"]
    rank = np.argsort(np.argsort(labels, kind="stable"))
    size = len(labels) / (shards * clients)
    for part in split(labels, kind="noniid", **settings):
        runs = np.split(np.sort(rank[part]), np.flatnonzero(np.diff(np.sort(rank[part])) > 1) + 1)
        assert len(runs) <= shards
        assert all(len(run) >= int(size) for run in runs)
        assert abs(len(part) - shards * size) < shards


def test_clients_with_two_shards_have_at_most_two_labels():
    """Shards of 100 have one label if each label has 600 samples, so clients have at most two."""
    counts = label_counts(split(LABELS, 30, kind="noniid", stream=STREAM), LABELS)
    assert ((counts > 0).sum(axis=0) <= 2).all()
    assert set(np.unique(counts)) == {0, 100, 200}


@given(requests())
def test_cell_iid_deals_shards_inside_equal_cells(request_):
    labels, settings = request_
    parts = split(labels, kind="cell-iid", **settings)
    blocks = np.array_split(np.arange(settings["clients"]), settings["cells"])
    sizes = [sum(len(parts[client]) for client in block) for block in blocks]
    assert max(sizes) - min(sizes) <= 1
    for block in blocks:
        cell = np.sort(np.concatenate([parts[client] for client in block]))
        rank = np.argsort(np.argsort(labels[cell], kind="stable"))
        for client in block:
            held = np.sort(rank[np.searchsorted(cell, parts[client])])
            assert (np.diff(held) > 1).sum() < settings["shards"]


SHARES = {
    ("iid", 11, 3): "a769e98c51c20959",
    ("noniid", 11, 3): "f2188a2634ec59cf",
    ("cell-iid", 10, 1): "ad192d4ec7428235",
    ("cell-iid", 11, 3): "53ce69fda2f32ef0",
    ("cell-iid", 40, 7): "4c49760d4019f860",
    ("cell-shards", 11, 3): "3e4e5ead617dbbe5",
    ("dirichlet", 11, 3): "0941ae36cf3ce160",
}


@pytest.mark.parametrize(("kind", "clients", "cells"), SHARES)
def test_splits_do_not_change_between_versions(kind, clients, cells):
    """Digests equal stored ones, whether even cells are given as ``cells`` or as ``cell_of``."""
    for given_cells in ({"cells": cells}, {"cell_of": even_cells(clients, cells)}):
        parts = split(LABELS, clients, kind=kind, stream=STREAM, **given_cells)
        content = b"|".join([*(part.astype("<i8").tobytes() for part in parts), b""])
        digest = hashlib.blake2b(content, digest_size=8).hexdigest()
        assert digest == SHARES[kind, clients, cells]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 3), st.integers(0, 100))
def test_cell_iid_follows_uneven_cells(sizes, shards, extra):
    """Cells have equal parts of the samples, each cut into shards for the cell's clients."""
    cell_of = np.repeat(np.arange(len(sizes)), sizes)
    labels = np.random.default_rng(extra).integers(0, 5, shards * max(sizes) * len(sizes) + extra)
    parts = split(
        labels,
        len(cell_of),
        kind="cell-iid",
        cells=99,  # overridden
        cell_of=cell_of,
        shards=shards,
        stream=STREAM,
    )
    np.testing.assert_array_equal(dealt(parts), np.arange(len(labels)))
    held = np.array([len(part) for part in parts])
    totals = np.bincount(cell_of, held)
    assert totals.max() - totals.min() <= 1
    for cell, total in enumerate(totals):
        block = np.flatnonzero(cell_of == cell)
        assert np.abs(held[block] - total / len(block)).max() < shards
        mine = np.sort(np.concatenate([parts[client] for client in block]))
        rank = np.argsort(np.argsort(labels[mine], kind="stable"))
        for client in block:
            held_ranks = np.sort(rank[np.searchsorted(mine, parts[client])])
            assert (np.diff(held_ranks) > 1).sum() < shards


@given(requests())
def test_cell_iid_with_one_cell_is_noniid(request_):
    labels, settings = request_
    settings = settings | {"cells": 1}
    for a, b in zip(
        split(labels, kind="cell-iid", **settings),
        split(labels, kind="noniid", **settings),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_cells_have_equal_label_counts_with_cell_iid_but_not_with_noniid():
    """Cells have 150 of the 600 samples of a label, within 5 sd, only with cell-iid.

    Counts are hypergeometric (1500 of 6000 samples; sd 10.06). With 40 counts, one is outside 5 sd
    with probability 2e-5.
    """
    sd = np.sqrt(1500 * 0.1 * 0.9 * (6000 - 1500) / 5999)

    def deviation(kind):
        parts = split(LABELS, 40, kind=kind, cells=4, stream=STREAM)
        per_cell = label_counts(parts, LABELS).reshape(10, 4, 10).sum(axis=2)
        return np.abs(per_cell - 150).max()

    assert deviation("cell-iid") < 5 * sd
    assert deviation("noniid") > 5 * sd


def labels_per_cell(kind, cells, stream=STREAM):
    """Number of labels in each cell of 40 clients."""
    parts = split(LABELS, 40, kind=kind, cells=cells, stream=stream)
    cell_of = even_cells(40, cells)
    members = [np.flatnonzero(cell_of == cell) for cell in range(cells)]
    return [len(np.unique(LABELS[np.concatenate([parts[i] for i in who])])) for who in members]


@pytest.mark.parametrize(("cells", "most"), [(1, 10), (2, 5), (4, 4), (5, 2), (8, 3)])
def test_cells_have_few_labels_with_cell_shards(cells, most):
    """A cell has 80/N consecutive shards of 8 per label; with noniid it has nearly all labels."""
    assert max(labels_per_cell("cell-shards", cells)) <= most
    if cells > 1:
        assert min(labels_per_cell("noniid", cells)) > most


def test_cell_shards_deal_neighbouring_shards_to_a_cell_and_labels_in_random_order():
    """Each client has at most ``shards`` labels; seeds put other labels into the first cell."""
    first = set()
    for seed in range(5):
        parts = split(LABELS, 40, kind="cell-shards", cells=2, stream=Stream(seed))
        np.testing.assert_array_equal(dealt(parts), np.arange(len(LABELS)))
        assert max(len(np.unique(LABELS[part])) for part in parts) <= 2
        first.add(tuple(np.unique(LABELS[np.concatenate(parts[:20])]).tolist()))
    assert len(first) > 1


def test_dirichlet_proportions_have_the_mean_and_variance_of_theory():
    """Proportions from Dir(alpha, K) have mean 1/K and variance (K-1) / (K^2 (K alpha + 1)).

    200 splits of 10 classes give 2000 draws of a client's share. The mean has standard error sd /
    sqrt(2000) = 0.0056 (tolerance 0.02). The variance, over all 4 clients, has a relative standard
    error below 0.02 (tolerance 0.1; rounding to samples adds 1e-5).
    """
    clients, alpha = 4, 0.5
    shares = np.concatenate(
        [
            label_counts(
                split(LABELS, clients, kind="dirichlet", alpha=alpha, stream=STREAM.child(number)),
                LABELS,
            )
            / 600
            for number in range(200)
        ]
    )
    variance = (clients - 1) / (clients**2 * (clients * alpha + 1))
    assert np.abs(shares.mean(axis=0) - 1 / clients).max() < 0.02
    assert shares.var() == pytest.approx(variance, rel=0.1)


def test_dirichlet_with_a_large_alpha_is_nearly_even_and_with_a_small_one_is_not():
    """With alpha = 1e6 and 10 clients, a client's part of 600 samples has sd 0.06."""
    even = label_counts(split(LABELS, 10, kind="dirichlet", alpha=1e6, stream=STREAM), LABELS)
    assert np.abs(even - 60).max() <= 2
    skewed = label_counts(split(LABELS, 10, kind="dirichlet", alpha=0.1, stream=STREAM), LABELS)
    assert (skewed.max(axis=1) > 200).all()


def test_dirichlet_is_fair_when_classes_have_fewer_samples_than_there_are_clients():
    """With 100 classes of 5 samples and 50 clients, clients have 10 samples on average (sd 3).

    The probability that one of 50 totals is off by 4.5 sd is below 1e-3.
    """
    labels = np.repeat(np.arange(100), 5)
    sizes = [len(p) for p in split(labels, 50, kind="dirichlet", alpha=1e8, stream=STREAM)]
    assert max(abs(size - 10) for size in sizes) < 4.5 * 3


@given(st.integers(0, 20), st.integers(1, 30))
def test_dirichlet_gives_every_client_the_minimum(seed, min_samples):
    parts = split(
        LABELS,
        20,
        kind="dirichlet",
        alpha=0.3,
        min_samples=min_samples,
        stream=Stream(seed),
    )
    assert min(map(len, parts)) >= min_samples


def test_dirichlet_redraws_until_every_client_has_the_minimum():
    """The split is redrawn if and only if the first draw has a client below the minimum."""
    loose = split(LABELS, 20, kind="dirichlet", alpha=0.2, stream=STREAM)
    smallest = min(map(len, loose))

    def same(min_samples):
        other = split(
            LABELS, 20, kind="dirichlet", alpha=0.2, min_samples=min_samples, stream=STREAM
        )
        return all(np.array_equal(a, b) for a, b in zip(loose, other, strict=True))

    assert same(smallest)
    assert not same(smallest + 1)


def test_an_impossible_dirichlet_split_is_an_error_with_a_remedy():
    with pytest.raises(DataError, match=r"alpha=0.01 .*min_samples=50 in 1000 draws.*Raise alpha"):
        split(LABELS, 100, kind="dirichlet", alpha=0.01, min_samples=50, stream=STREAM)


def test_natural_clients_are_the_groups():
    groups = np.array([30, 10, 20, 10, 30, 30])
    parts = split(np.zeros(6, int), 3, kind="natural", groups=groups, stream=STREAM)
    assert [part.tolist() for part in parts] == [[1, 3], [2], [0, 4, 5]]


def test_natural_draws_from_the_groups_that_are_large_enough():
    groups = np.repeat(np.arange(50), np.arange(50) + 1)
    seen = set()
    for number in range(20):
        parts = split(
            groups * 0,
            5,
            kind="natural",
            groups=groups,
            min_samples=30,
            stream=STREAM.child(number),
        )
        owners = [set(groups[part]) for part in parts]
        assert all(len(owner) == 1 for owner in owners)
        numbers = [owner.pop() for owner in owners]
        assert numbers == sorted(numbers)
        assert min(map(len, parts)) >= 30
        assert [len(part) for part in parts] == [number + 1 for number in numbers]
        seen |= set(numbers)
    assert len(seen) > 10  # 100 picks among 21 groups


@pytest.mark.parametrize("clients", [1, 3, 4, 7, 8, 11])
def test_natural_groups_may_be_reused(clients):
    """With reuse, the four groups that are large enough have equally many clients, to within 1."""
    groups = np.array([5, 1, 1, 3, 3, 3, 2, 2, 8, 8])
    settings = {"kind": "natural", "groups": groups, "min_samples": 2, "stream": STREAM}
    parts = split(np.zeros(10, int), clients, reuse=True, **settings)
    owners = [np.unique(groups[part]).tolist() for part in parts]
    assert owners == sorted(owners)
    for (owner,), part in zip(owners, parts, strict=True):
        np.testing.assert_array_equal(part, np.flatnonzero(groups == owner))
    counts = [owners.count([group]) for group in (1, 2, 3, 8)]
    assert sum(counts) == clients
    assert max(counts) - min(counts) <= 1
    if clients <= 4:
        once = split(np.zeros(10, int), clients, **settings)
        assert all(np.array_equal(a, b) for a, b in zip(parts, once, strict=True))


@pytest.mark.parametrize("kind", ["iid", "noniid", "cell-iid", "cell-shards", "dirichlet"])
def test_splits_depend_on_the_stream(kind):
    first, second = (
        split(LABELS, 10, kind=kind, cells=2, stream=STREAM.child(number)) for number in (0, 1)
    )
    assert not all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "sorted"}, ", ".join(SPLITS)),
        ({"clients": 0}, "clients is 0"),
        ({"cells": 0}, "cells is 0"),
        ({"min_samples": 0}, "min_samples is 0"),
        ({"clients": 3, "cells": 4}, "cells is 4 with 3 clients"),
        ({"clients": 2.5}, "clients is 2.5: give an integer"),
        ({"clients": 2.0}, "clients is 2.0: give an integer"),
        ({"cells": 2.0}, "cells is 2.0: give an integer"),
        ({"min_samples": 1.5}, "min_samples is 1.5: give an integer"),
        ({"kind": "noniid", "shards": 2.0}, "shards is 2.0: give an integer"),
        ({"kind": "cell-iid", "shards": 2.5}, "shards is 2.5: give an integer"),
        ({"labels": np.where(np.arange(6000) == 7, -3, LABELS)}, r"labels\[7\] is -3"),
        ({"labels": [[0], [1, 2]]}, "labels is .* give numbers"),
        ({"cell_of": np.repeat([0, 1], [3, 6])}, "cell_of has 9 entries for 10 clients"),
        ({"cell_of": [1, 0] * 5}, r"cell_of\[0\] is 1|cell_of\[1\] is 0 after 1"),
        ({"cell_of": [0] * 5 + [2] * 5}, "cell 1 has no client"),
        ({"cell_of": np.zeros(10)}, "dtype float64"),
        (
            {"kind": "cell-iid", "clients": 1600, "cell_of": np.repeat([0, 1], [1, 1599])},
            "3198 shards in a cell .* from 3000 samples",
        ),
        ({"kind": "natural", "groups": [1.0] * 6000}, "groups is float64"),
        ({"clients": 6001}, "6001 clients"),
        ({"clients": 100, "min_samples": 61}, "need 6100 samples, but there are only 6000"),
        (
            {"clients": 6001, "kind": "iid"},
            r"^6001 clients with at least 1 sample each need 6001 samples, but there are only "
            r"6000\. Use fewer clients\.$",
        ),
        ({"clients": 100, "min_samples": 61}, r"Use fewer clients or lower min_samples\.$"),
        (
            {"kind": "dirichlet", "alpha": 0.01, "clients": 300},
            r"gave each of 300 clients min_samples=1 .*\. Raise alpha or use fewer clients\.$",
        ),
        ({"kind": "dirichlet", "alpha": 0.0}, "alpha is 0.0"),
        ({"kind": "dirichlet", "alpha": float("nan")}, "alpha is nan"),
        ({"kind": "dirichlet", "alpha": float("inf")}, "alpha is inf"),
        ({"kind": "noniid", "shards": 0}, "shards is 0"),
        ({"kind": "noniid", "clients": 3001}, "6002 shards"),
        ({"kind": "cell-iid", "clients": 2999, "cells": 7}, "858 shards in a cell"),
        ({"kind": "noniid", "clients": 4, "min_samples": 1501}, "need 6004"),
        ({"kind": "natural"}, "needs groups"),
        ({"kind": "natural", "groups": np.zeros(5, int)}, r"groups is int64 \[5\]"),
        (
            {"kind": "natural", "groups": LABELS, "clients": 11},
            "only 10 of .*at most 10 clients, or set reuse to deal groups again",
        ),
        (
            {"kind": "natural", "groups": LABELS, "min_samples": 601, "reuse": True},
            "only 0 of .* groups have at least 601 samples.*Lower min_samples",
        ),
        ({"labels": LABELS / 2}, "labels is float64"),
        ({"labels": LABELS.reshape(2, -1)}, r"labels is int64 \[2, 3000\]"),
        ({"labels": []}, "labels is float64"),
    ],
)
def test_impossible_requests_are_errors(settings, message):
    request_ = {"labels": LABELS, "clients": 10, "kind": "iid", "stream": STREAM} | settings
    with pytest.raises(DataError, match=message):
        split(**request_)


@pytest.mark.parametrize("kind", SPLITS)
def test_settings_of_fixed_sizes_are_refused_by_other_splits(kind):
    """Reuse needs fixed sizes, except where whole groups are dealt again."""
    given = {"kind": kind, "stream": STREAM, "groups": LABELS if kind == "natural" else None}
    for flags, message in (
        ({"samples_per_client": 2}, f"samples_per_client=2 conflicts with split='{kind}'"),
        ({"reuse": True}, "reuse needs samples_per_client"),
    ):
        if kind == "natural" and "reuse" in flags:
            continue
        if kind in {"iid", "dirichlet"} and "reuse" not in flags:
            continue
        with pytest.raises(DataError, match=message):
            split(LABELS, 10, **given | flags)


def test_a_minimum_that_shards_cannot_meet_is_an_error():
    """Shards differ by one sample, so it depends on the draw whether a client has the minimum."""
    assert sorted(map(len, split([0] * 7, 3, kind="noniid", stream=STREAM))) == [2, 2, 3]
    labels = [0] * 10
    for seed in range(20):  # 10 samples in 6 shards of 1 or 2: a client may get only 2
        sizes = sorted(map(len, split(labels, 3, kind="noniid", stream=Stream(seed))))
        if sizes[0] < 3:
            with pytest.raises(DataError, match="has 2 samples, fewer than min_samples=3"):
                split(labels, 3, kind="noniid", min_samples=3, stream=Stream(seed))
            break
    else:
        pytest.fail("no seed dealt two small shards to one client")
