"""Groups of clients that hold sets of labels and are there in turn, session by session (Chang et
al., "Federated Learning with Dynamic Client Arrival and Departure", Section 6 and Appendix B.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from channels.arrays import IntArray
from channels.streams import Stream
from channels.validation import checked_cells
from wirelessfl.data.label_splits import deal_evenly
from wirelessfl.data.labels import cells_of_clients, checked_labels, checked_number
from wirelessfl.data.splits import Samples, Split, split
from wirelessfl.errors import DataError


@dataclass(frozen=True, eq=False)
class LabelGroups:
    """Groups of clients with different label sets, present in turn.

    Args:
        group_of: [clients], integers, the group of each client.
        labels: of each group, at least one; two groups that take turns, and perhaps a third, whose
            labels neither of them has and who comes in the last session only. They are sorted.

    Raises:
        DataError: other than two or three groups, a group without clients or labels, or labels of
            the third that others have.
    """

    group_of: IntArray
    labels: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        labels = tuple(tuple(sorted(set(one))) for one in self.labels)
        object.__setattr__(self, "labels", labels)
        if len(labels) not in (2, 3) or not all(labels):
            raise DataError(
                f"labels is {self.labels}: give the labels of two groups that take turns, and "
                "perhaps those of a third in the last session; each needs at least one."
            )
        if len(labels) == 3 and set(labels[2]) & {*labels[0], *labels[1]}:
            raise DataError(
                f"labels[2] is {_named(labels[2])}, and an earlier group has some of them: the "
                "third group's labels must be its own."
            )
        group_of = np.array(self.group_of)
        present = np.unique(group_of).tolist()
        integers = group_of.ndim == 1 and group_of.dtype.kind in "iu"
        if not integers or present != list(range(len(labels))):
            raise DataError(
                f"group_of is {group_of.dtype} {list(group_of.shape)} with groups {present}, and "
                f"labels has {len(labels)} groups: give each client the number of one, and each "
                "group a client."
            )
        group_of = group_of.astype(np.int64)
        group_of.setflags(write=False)
        object.__setattr__(self, "group_of", group_of)

    def group_in(self, session: int, sessions: int) -> int:
        """The group present: 0, 1, 0, 1, ...; the third, if there is one, in the last session.

        Args:
            session: counts from 0.
            sessions: how many there are.

        Raises:
            DataError: there is no such session.
        """
        sessions = checked_number("sessions", sessions, 1)
        if checked_number("session", session, 0) >= sessions:
            raise DataError(
                f"session is {session}, and sessions is {sessions}: they count from 0 to "
                f"{sessions - 1}."
            )
        return 2 if len(self.labels) == 3 and session == sessions - 1 else session % 2

    @property
    def shared(self) -> tuple[int, ...]:
        """Labels that groups 0 and 1 have in common, ascending."""
        return tuple(sorted(set(self.labels[0]) & set(self.labels[1])))


def label_groups(
    classes: int, cell_of: ArrayLike, *, overlap: float, unseen_labels: int = 0
) -> LabelGroups:
    """Two groups whose label sets overlap by a given fraction, with clients of both in every cell.

    Of L = ``classes`` - ``unseen_labels`` labels, both have G = floor(L / (2 - o)) at an overlap o,
    and share floor(G o) of them: group 0 has the first G, and group 1 the next ones, beginning with
    those shared. This is the rule of the published code. It may leave the last labels to nobody: at
    o = 0.2, of 10 labels, the groups have 0-4 and 4-8, and label 9 is unused. At o = 1 both have
    all. Labels behind the first L belong to a third group (Table 12).

    Clients are dealt to the groups in turn inside each cell.

    Args:
        classes: number of labels.
        cell_of: [clients], sorted, the cell of each client, as in ``channels.Network``.
        overlap: in [0, 1], taken for the decimal number that it is written as.
        unseen_labels: labels that nobody holds before the last session.

    Raises:
        DataError: the overlap cannot be made with so few labels, no labels are left, or a cell has
            fewer clients than there are groups.
    """
    classes = checked_number("classes", classes, 1)
    unseen = checked_number("unseen_labels", unseen_labels, 0)
    if unseen >= classes:
        raise DataError(
            f"unseen_labels is {unseen}, and classes is {classes}: leave labels to the other "
            "groups. Lower unseen_labels."
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
            f"cell {sizes.argmin()} has {sizes.min()} of the {len(cells)} clients, and there are "
            f"{len(labels)} groups: every cell needs a client of each. Have at least {needed} "
            f"clients, {len(labels)} in each of {len(sizes)} cells, or fewer cells."
        )
    firsts = np.cumsum(sizes) - sizes
    turn = np.arange(len(cells)) - firsts[cells]
    return LabelGroups(turn % len(labels), tuple(map(tuple, labels)))


def split_groups(
    labels: ArrayLike | Tensor,
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
) -> list[IntArray]:
    """Indices of the samples of each client, where groups of clients hold sets of labels.

    Every group gets the samples of its labels and deals them to its clients as ``split`` does.
    Samples of labels that nobody has are nobody's.

    Args:
        labels: [n], integers >= 0. Labels of a group may be absent as long as it has samples.
        groups: who holds which labels.
        shared_labels: whether the samples of a label that groups 0 and 1 share go half and half to
            them at random (``split``), or all to both (``both``).
        kind: as in ``split``, except ``natural``; or a split with its settings.
        cell_of: [clients], sorted, the cell of each client.
        alpha, shards, min_samples, samples_per_client, reuse: as in ``split``; for each group.
        stream: where the randomness comes from; equal streams give equal splits.

    Returns:
        For each client, in the network's order, its indices into ``labels``, ascending.

    Raises:
        DataError: the request is impossible, with the group where it is.
    """
    if kind == "natural" or (not isinstance(kind, str) and kind.by_groups):
        raise DataError(
            'split "natural" keeps the labels that each client has, and groups of clients '
            "determine them too. Choose another split."
        )
    if shared_labels not in ("split", "both"):
        raise DataError(f"shared_labels is {shared_labels!r}: choose split or both.")
    labels = checked_labels(labels)
    cells = cells_of_clients(len(groups.group_of), 1, cell_of)
    withheld = np.full(len(labels), -1)  # the group, 0 or 1, that a shared sample does not go to
    if shared_labels == "split":
        common = np.flatnonzero(np.isin(labels, groups.shared))
        withheld[common] = deal_evenly(labels[common], 2, stream.child("shared").generator())
    client_samples: list[IntArray] = [np.empty(0, dtype=np.int64)] * len(cells)
    for group, group_labels in enumerate(groups.labels):
        members = np.flatnonzero(groups.group_of == group)
        mine = np.flatnonzero(np.isin(labels, group_labels) & (withheld != group))
        where = f"group {group}, labels {_named(group_labels)}, {len(members)} clients"
        if not len(mine):
            raise DataError(
                f"{where}: none of the {len(labels)} samples is of these labels. Give labels that "
                "the data have."
            )
        try:
            # Cells without a client of the group have no part in its samples.
            cell_of_member = np.unique(cells[members], return_inverse=True)[1]
            randomness = stream.child("group", group)
            if isinstance(kind, Split):
                dealt = kind.deal(Samples(labels[mine]), cell_of_member, randomness)
            else:
                dealt = split(
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
        for client, rows in zip(members.tolist(), dealt, strict=True):
            client_samples[client] = mine[rows]
    return client_samples


def _set_sizes(labels: int, overlap: float) -> tuple[int, int]:
    """Labels of each of the two sets, and how many of them are shared."""
    try:
        exact = Fraction(str(overlap))  # as it is written: floor(5 * 0.2) is 1
    except ValueError:  # NaN, infinite, no number
        exact = Fraction(-1)
    count = math.floor(labels / (2 - exact)) if 0 <= exact <= 1 else 0
    shared = math.floor(count * exact)
    if count and (shared or not exact):
        return count, shared
    # The smallest overlap that gives a set of each size and one shared label.
    sizes = range(1, labels + 1)
    min_overlap = min(max(2 - Fraction(labels, size), Fraction(1, size)) for size in sizes)
    shown = math.ceil(min_overlap * 10_000) / 10_000
    some = "1" if shown == 1 else f"{shown:g} to 1"
    raise DataError(
        f"overlap is {overlap}: two groups' sets cannot overlap so with {labels} labels. Give "
        f"{some if labels < 2 else f'0 or {some}'}{', or have more labels' * (0 <= exact < 1)}."
    )


def _named(labels: tuple[int, ...]) -> str:
    """Labels in few words."""
    if len(labels) > 1 and labels[-1] - labels[0] == len(labels) - 1:
        return f"{labels[0]}-{labels[-1]}"
    return ", ".join(map(str, labels))
