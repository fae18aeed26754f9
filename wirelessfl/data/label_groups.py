"""Groups of clients with different label sets, present in alternating sessions.

Chang et al., "Federated Learning with Dynamic Client Arrival and Departure", Section 6 and
Appendix B.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from channels.arrays import IntArray
from channels.streams import Stream
from channels.validation import checked_cells
from wirelessfl.base.errors import DataError
from wirelessfl.data.client_samples import GroupedSamples
from wirelessfl.data.labels import cells_of_clients, checked_labels, checked_number
from wirelessfl.data.splits import Samples, Split, split
from wirelessfl.data.splits.label_splits import deal_evenly


@dataclass(frozen=True, eq=False)
class LabelGroups:
    """Groups of clients with different label sets, present in alternating sessions.

    Args:
        group_of: [clients], integers, the group of each client.
        labels: labels of each group, at least one; they are sorted. Two groups alternate. An
            optional third group, present only in the last session, has labels that no other has.
    """

    group_of: NDArray[np.integer[Any]]
    labels: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        labels = tuple(tuple(sorted(set(group))) for group in self.labels)
        object.__setattr__(self, "labels", labels)
        if len(labels) not in (2, 3) or not all(labels):
            raise DataError(
                f"labels is {self.labels}: give the labels of two alternating groups, and "
                "optionally of a third for the last session; each group needs at least one label."
            )
        if len(labels) == 3 and set(labels[2]) & {*labels[0], *labels[1]}:
            raise DataError(
                f"labels[2] is {_named(labels[2])}, but an earlier group has some of these labels: "
                "give the third group other labels."
            )
        group_of = np.array(self.group_of)
        present = np.unique(group_of).tolist()
        integers = group_of.ndim == 1 and group_of.dtype.kind in "iu"
        if not integers or present != list(range(len(labels))):
            raise DataError(
                f"group_of is {group_of.dtype} {list(group_of.shape)} with groups {present}, but "
                f"labels has {len(labels)} groups: give each client a group from 0 to "
                f"{len(labels) - 1}, and each group at least one client."
            )
        group_of = group_of.astype(np.int8)
        group_of.setflags(write=False)
        object.__setattr__(self, "group_of", group_of)

    def group_in(self, session: int, sessions: int) -> int:
        """The group present in a session: 0, 1, 0, 1, ...; a third group in the last session.

        Args:
            session: index of the session, from 0.
            sessions: number of sessions.
        """
        sessions = checked_number("sessions", sessions, 1)
        if checked_number("session", session, 0) >= sessions:
            raise DataError(
                f"session is {session} with sessions={sessions}: give an index from 0 to "
                f"{sessions - 1}."
            )
        return 2 if len(self.labels) == 3 and session == sessions - 1 else session % 2

    @property
    def shared(self) -> tuple[int, ...]:
        """Labels shared by groups 0 and 1, ascending."""
        return tuple(sorted(set(self.labels[0]) & set(self.labels[1])))


def label_groups(
    classes: int, cell_of: ArrayLike, *, overlap: float, unseen_labels: int = 0
) -> LabelGroups:
    """Make groups whose label sets overlap by a given fraction, with all groups in every cell.

    With L = ``classes`` - ``unseen_labels`` labels and overlap o, both groups have
    G = floor(L / (2 - o)) labels and share floor(G o) of them. Group 0 has the first G labels, and
    group 1 has the G labels that start with the shared ones. This is the rule of the published
    code. It may leave the last labels unused: with o = 0.2 and 10 labels the groups have 0-4 and
    4-8, and label 9 is unused. With o = 1 both have all labels. The labels after the first L belong
    to a third group (Table 12).

    Within each cell, clients are assigned to the groups in turn.

    Args:
        classes: number of labels.
        cell_of: [clients], sorted, the cell of each client, as in ``channels.Network``.
        overlap: in [0, 1], interpreted as the decimal number as written.
        unseen_labels: number of labels that no client has before the last session.
    """
    classes = checked_number("classes", classes, 1)
    unseen = checked_number("unseen_labels", unseen_labels, 0)
    if unseen >= classes:
        raise DataError(
            f"unseen_labels is {unseen} with classes={classes}, which leaves no labels for the "
            "other groups: lower unseen_labels."
        )
    count, shared = _set_sizes(classes - unseen, overlap)
    labels = [range(count), range(count - shared, 2 * count - shared)]
    if unseen:
        labels.append(range(classes - unseen, classes))
    try:
        cells = checked_cells(cell_of)
    except ValueError as error:
        raise DataError(str(error)) from None
    sizes = np.bincount(cells)
    if sizes.min() < len(labels):
        needed = len(labels) * len(sizes)
        raise DataError(
            f"cell {sizes.argmin()} has {sizes.min()} of the {len(cells)} clients, but every cell "
            f"needs a client of each of the {len(labels)} groups: use at least {needed} clients, "
            f"{len(labels)} in each of {len(sizes)} cells, or fewer cells."
        )
    firsts = np.cumsum(sizes) - sizes
    rank = np.arange(len(cells)) - firsts[cells]
    return LabelGroups(rank % len(labels), tuple(map(tuple, labels)))


def split_groups(
    labels: ArrayLike | torch.Tensor,
    groups: LabelGroups,
    *,
    shared_labels: Literal["split", "both"] = "split",
    kind: str | Split,
    cell_of: ArrayLike,
    alpha: float = 0.5,
    shards: int = 2,
    min_samples: int = 1,
    samples_per_client: int | None = None,
    reuse: bool = False,
    stream: Stream,
) -> GroupedSamples:
    """Split samples over clients that belong to groups with different label sets.

    Every group gets the samples of its labels and splits them over its clients like ``split``.
    Samples whose label no group has are not used.

    Args:
        labels: [n], integers >= 0. A group's labels may be missing as long as it has samples.
        groups: the groups of clients with their labels.
        shared_labels: samples of a label that groups 0 and 1 share are divided in halves at random
            (``split``), or given to both groups (``both``).
        kind: name of a split as in ``split``, except ``natural``, in which clients determine the
            labels; or a ``Split`` with its settings.
        cell_of: [clients], sorted, the cell of each client.
        alpha, shards, min_samples, samples_per_client, reuse: as in ``split``, for each group.
        stream: randomness of the split; equal streams give equal splits.

    Returns:
        For each client, in the network's order, its indices into ``labels``, ascending. They are
        computed on access.
    """
    if kind == "natural" or (not isinstance(kind, str) and kind.by_groups):
        raise DataError(
            'split "natural" conflicts with groups, because it keeps the labels of each natural '
            "client: choose another split."
        )
    if shared_labels not in ("split", "both"):
        raise DataError(f"shared_labels is {shared_labels!r}: choose split or both.")
    labels = checked_labels(labels)
    cells = cells_of_clients(len(groups.group_of), 1, cell_of)
    withheld = np.full(len(labels), -1)  # the group, 0 or 1, that does not get a shared sample
    if shared_labels == "split":
        common = np.flatnonzero(np.isin(labels, groups.shared))
        withheld[common] = deal_evenly(labels[common], 2, stream.child("shared").generator())
    pools, dealt = list[IntArray](), list[Sequence[IntArray]]()
    for group, group_labels in enumerate(groups.labels):
        members = np.flatnonzero(groups.group_of == group)
        mine = np.flatnonzero(np.isin(labels, group_labels) & (withheld != group))
        where = f"group {group}, labels {_named(group_labels)}, {len(members)} clients"
        if not len(mine):
            raise DataError(
                f"{where}: none of the {len(labels)} samples has one of these labels. Give labels "
                "that occur in the data."
            )
        try:
            # Cells without a client of the group get none of its samples.
            cell_of_member = np.unique(cells[members], return_inverse=True)[1]
            randomness = stream.child("group", group)
            if isinstance(kind, Split):
                samples = kind.deal(Samples(labels[mine]), cell_of_member, randomness)
            else:
                samples = split(
                    labels[mine],
                    len(members),
                    kind=kind,
                    cell_of=cell_of_member,
                    alpha=alpha,
                    shards=shards,
                    min_samples=min_samples,
                    samples_per_client=samples_per_client,
                    reuse=reuse,
                    stream=randomness,
                )
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        pools.append(mine)
        dealt.append(samples)
    return GroupedSamples(groups.group_of, pools, dealt)


def _set_sizes(labels: int, overlap: float) -> tuple[int, int]:
    """Number of labels of each of the two sets, and number of shared labels."""
    try:
        exact = Fraction(str(overlap))  # the decimal as written, so that floor(5 * 0.2) is 1
    except ValueError:  # NaN, infinite, or not a number
        exact = Fraction(-1)
    count = math.floor(labels / (2 - exact)) if 0 <= exact <= 1 else 0
    shared = math.floor(count * exact)
    if count and (shared or not exact):
        return count, shared
    # For each set size, the smallest overlap that gives this size and one shared label.
    sizes = range(1, labels + 1)
    min_overlap = min(max(2 - Fraction(labels, size), Fraction(1, size)) for size in sizes)
    shown = math.ceil(min_overlap * 10_000) / 10_000
    some = "1" if shown == 1 else f"{shown:g} to 1"
    raise DataError(
        f"overlap is {overlap}, which is impossible for two groups with {labels} labels: give "
        f"{some if labels < 2 else f'0 or {some}'}{', or use more labels' * (0 <= exact < 1)}."
    )


def _named(labels: tuple[int, ...]) -> str:
    """Labels as a short string, e.g. "0-4" or "1, 3"."""
    if len(labels) > 1 and labels[-1] - labels[0] == len(labels) - 1:
        return f"{labels[0]}-{labels[-1]}"
    return ", ".join(map(str, labels))
