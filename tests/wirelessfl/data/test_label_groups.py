"""Groups of clients with label sets: the published rule, presence, and division of samples."""

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from channels import Stream, even_cells
from wirelessfl.base.errors import DataError
from wirelessfl.data import SPLITS, split
from wirelessfl.data.label_groups import LabelGroups, label_groups, split_groups
from wirelessfl.runs.folder.identity import digest

STREAM = Stream(1, ("split",))
LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 120))
CELL_OF = np.repeat([0, 1, 2], [4, 5, 3])
ALL_BUT_NATURAL = [kind for kind in SPLITS if kind != "natural"]

networks = st.lists(st.integers(3, 6), min_size=1, max_size=4).map(
    lambda sizes: np.repeat(np.arange(len(sizes)), sizes)
)


def tenths_rule(labels, tenths):
    """The published rule in integers, for an overlap of t tenths: labels per group, and shared."""
    count = 10 * labels // (20 - tenths)
    return count, count * tenths // 10


@given(st.integers(1, 300), st.sampled_from([0, 2, 6, 8, 10]), st.integers(0, 5))
def test_consecutive_sessions_overlap_by_the_published_rule(labels, tenths, unseen):
    count, shared = tenths_rule(labels, tenths)
    request_ = {"overlap": tenths / 10, "unseen_labels": unseen}
    if not count or (tenths and not shared):
        with pytest.raises(DataError, match=f"overlap is {tenths / 10}, .* with {labels} labels"):
            label_groups(labels + unseen, [0] * 6, **request_)
        return
    groups = label_groups(labels + unseen, [0] * 6, **request_)
    sets = [set(groups.labels[groups.group_in(session, 7)]) for session in range(6)]
    assert all(len(own) == count for own in sets)
    assert all(len(now & then) == shared for now, then in pairwise(sets))
    assert sets[0] == set(range(count))
    assert sets[0] | sets[1] == set(range(2 * count - shared))
    assert max(sets[1]) < labels
    assert set(groups.shared) == sets[0] & sets[1]
    if unseen:
        last = set(groups.labels[groups.group_in(6, 7)])
        assert last == set(range(labels, labels + unseen))


@given(st.integers(1, 12), st.integers(0, 10_000))
def test_overlaps_are_interpreted_as_decimal_numbers(labels, ten_thousandths):
    """Overlaps with four decimals follow the rule exactly; values that errors suggest work."""
    scale = 10_000
    overlap = float(Decimal(ten_thousandths) / scale)
    count = scale * labels // (2 * scale - ten_thousandths)
    shared = count * ten_thousandths // scale
    try:
        groups = label_groups(labels, [0, 0], overlap=overlap)
    except DataError as error:
        assert not count or (overlap and not shared)
        remedy = str(error).split("give ")[1].removeprefix("0 or ")
        least = float(remedy.split()[0].rstrip(".,"))
        assert least > overlap
        assert label_groups(labels, [0, 0], overlap=least).shared
        below = round(least - 1e-4, 4)
        with pytest.raises(DataError):
            label_groups(labels, [0, 0], overlap=below or 1e-9)
        return
    assert [len(own) for own in groups.labels] == [count, count]
    assert len(groups.shared) == shared


def test_label_sets_of_ten_labels_as_in_the_paper():
    """By hand, groups have 5 labels (0 or 1 shared), 7 (4), 8 (6) or 10 (10)."""
    found = {o: label_groups(10, [0, 0], overlap=o).labels for o in (0, 0.2, 0.6, 0.8, 1)}
    ranges = {0: (5, 5), 0.2: (5, 4), 0.6: (7, 3), 0.8: (8, 2), 1: (10, 0)}
    for overlap, (count, start) in ranges.items():
        assert found[overlap] == (tuple(range(count)), tuple(range(start, start + count)))


@given(networks, st.sampled_from([0, 2]))
def test_every_cell_has_clients_of_every_group(cell_of, unseen):
    groups = label_groups(10, cell_of, overlap=0, unseen_labels=unseen)
    for cell in range(cell_of[-1] + 1):
        own = groups.group_of[cell_of == cell]
        np.testing.assert_array_equal(own, np.resize(np.arange(len(groups.labels)), len(own)))


def test_two_groups_alternate_and_a_third_is_present_last():
    two = label_groups(10, [0] * 3, overlap=0)
    three = label_groups(10, [0] * 3, overlap=0, unseen_labels=2)
    assert [two.group_in(session, 5) for session in range(5)] == [0, 1, 0, 1, 0]
    assert [three.group_in(session, 5) for session in range(5)] == [0, 1, 0, 1, 2]
    for session in (-1, 5):
        with pytest.raises(DataError, match=f"session is {session}"):
            two.group_in(session, 5)


@st.composite
def requests(draw):
    """Samples with labels, some of which no group may have, and groups of clients in cells."""
    cell_of = draw(networks)
    classes = draw(st.integers(6, 20))
    unseen = draw(st.integers(0, 2))
    overlap = draw(st.sampled_from([0, 0.6, 0.8, 1]))
    groups = label_groups(classes, cell_of, overlap=overlap, unseen_labels=unseen)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    labels = rng.permutation(np.repeat(np.arange(classes), rng.integers(20, 80, classes)))
    return labels, groups, cell_of, Stream(draw(st.integers(0, 9)), ("data",))


def owned(parts, groups, group):
    """Samples of a group's clients, sorted, including duplicates."""
    return np.sort(np.concatenate([parts[i] for i in np.flatnonzero(groups.group_of == group)]))


KINDS = ["iid", "noniid", "cell-iid", "cell-shards", "half", "dirichlet"]


@given(requests(), st.sampled_from(KINDS))
def test_samples_of_the_groups_labels_are_dealt_once(request_, kind):
    """Samples go to the group that has their label; those of shared labels are halved."""
    labels, groups, cell_of, stream = request_
    settings = {"kind": kind, "cell_of": cell_of, "alpha": 5.0, "stream": stream}
    assume(kind != "half" or min(map(len, groups.labels)) > 1)
    assume(kind != "half" or np.bincount(groups.group_of).min() > 1)
    parts = split_groups(labels, groups, **settings)
    assert len(parts) == len(cell_of)
    assert all(np.all(np.diff(part) > 0) for part in parts)
    used = np.flatnonzero(np.isin(labels, np.concatenate(groups.labels)))
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), used)
    owns = [owned(parts, groups, group) for group in range(len(groups.labels))]
    for group, own in enumerate(owns):
        assert set(labels[own]) <= set(groups.labels[group])
    for label in groups.shared:
        counts = [np.sum(labels[own] == label) for own in owns[:2]]
        assert abs(counts[0] - counts[1]) <= 1
    again = split_groups(labels, groups, **settings)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))


@given(requests())
def test_both_groups_may_have_all_samples_of_shared_labels(request_):
    labels, groups, cell_of, stream = request_
    settings = {"kind": "iid", "cell_of": cell_of, "stream": stream}
    parts = split_groups(labels, groups, shared_labels="both", **settings)
    for group, own in enumerate(groups.labels):
        wanted = np.flatnonzero(np.isin(labels, own))
        np.testing.assert_array_equal(owned(parts, groups, group), wanted)


@pytest.mark.parametrize("kind", ALL_BUT_NATURAL)
def test_a_group_is_split_like_any_clients(kind):
    """A group's parts equal those of ``split`` on the samples of the group's labels."""
    cell_of = even_cells(12, 3)
    labels = LABELS * 2 + np.arange(len(LABELS)) % 2
    groups = label_groups(20, cell_of, overlap=0)
    parts = split_groups(labels, groups, kind=kind, cell_of=cell_of, min_samples=2, stream=STREAM)
    for group, own in enumerate(groups.labels):
        mine = np.flatnonzero(np.isin(labels, own))
        members = np.flatnonzero(groups.group_of == group)
        stream = STREAM.child("group", group)
        settings = {"kind": kind, "cells": 3, "min_samples": 2, "stream": stream}
        expected = split(labels[mine], len(members), **settings)
        for client, part in zip(members, expected, strict=True):
            np.testing.assert_array_equal(parts[client], mine[part])


@pytest.mark.parametrize("settings", [{"samples_per_client": 7, "reuse": True}, {}])
def test_samples_of_many_clients_in_mixed_groups(settings):
    """Groups of random clients; samples are looked up by client, in any order."""
    draw, many = np.random.default_rng(5), np.tile(LABELS, 20)
    groups = LabelGroups(draw.integers(0, 2, 700), (range(4), range(4, 10)))
    cells = np.zeros(700, dtype=int)
    parts = split_groups(many, groups, kind="iid", cell_of=cells, stream=STREAM, **settings)
    for group, own in enumerate(groups.labels):
        mine, members = np.flatnonzero(np.isin(many, own)), np.flatnonzero(groups.group_of == group)
        stream = STREAM.child("group", group)
        expected = split(many[mine], len(members), kind="iid", stream=stream, **settings)
        for rank in draw.permutation(len(members)):
            np.testing.assert_array_equal(parts[int(members[rank])], mine[expected[int(rank)]])
    assert parts.sizes.tolist() == [len(part) for part in parts]
    same = split_groups(many, groups, kind="iid", cell_of=cells, stream=STREAM, **settings)
    moved = LabelGroups(1 - groups.group_of, groups.labels)
    other = split_groups(many, moved, kind="iid", cell_of=cells, stream=STREAM, **settings)
    identities = [digest(*found.identity) for found in (parts, same, other)]
    assert identities[0] == identities[1] != identities[2]


def test_cells_share_their_groups_samples_evenly():
    """With cell-iid, each of three uneven cells has a third of a group's samples."""
    groups = label_groups(10, CELL_OF, overlap=0.6)
    parts = split_groups(LABELS, groups, kind="cell-iid", cell_of=CELL_OF, stream=STREAM)
    sizes = np.array([len(part) for part in parts])
    for group in range(2):
        of_cells = np.bincount(CELL_OF, sizes * (groups.group_of == group))
        assert np.ptp(of_cells) <= 1


def test_groups_may_be_absent_from_a_cell():
    """A cell without clients of a group gets none of the group's samples."""
    groups = LabelGroups(np.array([0, 0, 1, 1]), ((0, 1), (2, 3)))
    settings = {"kind": "cell-iid", "cell_of": [0, 0, 1, 1], "shards": 1, "stream": STREAM}
    parts = split_groups([0, 1, 2, 3] * 5, groups, **settings)
    assert [len(part) for part in parts] == [5] * 4


@pytest.mark.parametrize("kind", ["iid", "dirichlet"])
def test_fixed_sizes_within_groups(kind):
    groups = label_groups(10, CELL_OF, overlap=0.2)
    settings = {"kind": kind, "cell_of": CELL_OF, "samples_per_client": 300, "stream": STREAM}
    parts = split_groups(LABELS, groups, reuse=True, **settings)
    assert [len(part) for part in parts] == [300] * len(CELL_OF)
    for group, own in enumerate(groups.labels):
        held = owned(parts, groups, group)
        assert set(LABELS[held]) <= set(own)
        assert len(np.unique(held)) < len(held)
    with pytest.raises(DataError, match=r"group 0, labels 0-4, 7 clients: .*reuse"):
        split_groups(LABELS, groups, **settings)


def test_shared_labels_are_divided_according_to_the_stream():
    groups = label_groups(10, CELL_OF, overlap=1)
    first, second = (
        owned(
            split_groups(LABELS, groups, kind="iid", cell_of=CELL_OF, stream=STREAM.child(number)),
            groups,
            0,
        )
        for number in range(2)
    )
    assert len(first) == len(second) == len(LABELS) // 2
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"overlap": -0.1}, r"overlap is -0.1, .* with 10 labels: give 0 or 0.2 to 1\.$"),
        ({"overlap": 1.01}, r"overlap is 1.01, .*: give 0 or 0.2 to 1\.$"),
        ({"overlap": float("nan")}, "overlap is nan"),
        ({"overlap": float("inf")}, "overlap is inf"),
        ({"overlap": True}, "overlap is True"),
        ({"overlap": 0.1}, "overlap is 0.1, .*: give 0 or 0.2 to 1, or use more labels"),
        (
            {"overlap": 0.2, "unseen_labels": 7},
            "overlap is 0.2, .* with 3 labels: give 0 or 0.5 to",
        ),
        ({"unseen_labels": 9}, r"overlap is 0, .* with 1 labels: give 1, or use more labels"),
        ({"unseen_labels": 10}, "unseen_labels is 10 with classes=10.*lower unseen_labels"),
        ({"unseen_labels": -1}, "unseen_labels is -1"),
        ({"classes": 0}, "classes is 0"),
        ({"classes": 2.0}, "classes is 2.0: give an integer"),
        ({"cell_of": [0, 0, 1]}, "cell 1 has 1 of the 3 clients, but .* of the 2 groups.*least 4"),
        ({"cell_of": [0, 0], "unseen_labels": 2}, "cell 0 has 2 of the 2 clients, .*3 groups"),
        ({"cell_of": [0, 0, 2, 2]}, "cell 1 has no client"),
        ({"cell_of": [1, 1, 0, 0]}, "Sort the clients by cell"),
    ],
)
def test_impossible_groups_are_errors(settings, message):
    request_ = {"classes": 10, "cell_of": CELL_OF, "overlap": 0} | settings
    with pytest.raises(DataError, match=message):
        label_groups(**request_)


@pytest.mark.parametrize(
    ("group_of", "labels", "message"),
    [
        ([0, 0], ((1,),), "give the labels of two alternating"),
        ([0, 1], ((1,), ()), "each group needs at least one"),
        ([0, 1, 2], ((1, 4), (2,), (3, 4)), r"labels\[2\] is 3-4, but an earlier group"),
        ([0, 2], ((1,), (2,)), r"groups \[0, 2\], but labels has 2 groups"),
        ([0, 0], ((1,), (2,)), "each group at least one client"),
        ([0.0, 1.0], ((1,), (2,)), r"group_of is float64 \[2\]"),
        ([[0, 1]], ((1,), (2,)), r"group_of is int64 \[1, 2\]"),
    ],
)
def test_inconsistent_groups_are_errors(group_of, labels, message):
    with pytest.raises(DataError, match=message):
        LabelGroups(np.array(group_of), labels)


def test_groups_are_sorted_copied_and_read_only():
    given_groups = np.array([1, 0])
    groups = LabelGroups(given_groups, ([4, 2, 2], (7, 4)))
    given_groups[:] = 0
    assert groups.labels == ((2, 4), (4, 7))
    assert groups.shared == (4,)
    assert groups.group_of.tolist() == [1, 0]
    with pytest.raises(ValueError, match="read-only"):
        groups.group_of[0] = 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "natural"}, 'split "natural" conflicts with groups.*another'),
        ({"kind": "sorted"}, "group 0, .*split 'sorted' is unknown"),
        ({"shared_labels": "half"}, "shared_labels is 'half': choose split or both"),
        ({"labels": [0, 1, 2] * 9}, "group 1, labels 5-9, 5 clients: none of the 27 samples"),
        ({"labels": [0, 5, 6, 7] * 2}, "group 0, labels 0-4, 7 clients: 7 clients with at least 1"),
        ({"labels": [0.5]}, "labels is float64"),
        ({"cell_of": CELL_OF[:-1]}, "cell_of has 11 entries for 12 clients"),
        ({"min_samples": 121}, "group 1, labels 5-9, 5 clients|group 0, labels 0-4, 7 clients"),
        ({"kind": "distinct"}, "group 0, .*clients is 7: .* there are only 5 labels"),
    ],
)
def test_impossible_splits_are_errors(settings, message):
    groups = label_groups(10, CELL_OF, overlap=0)
    request_ = {"labels": LABELS, "kind": "iid", "cell_of": CELL_OF, "stream": STREAM} | settings
    with pytest.raises(DataError, match=message):
        split_groups(groups=groups, **request_)
