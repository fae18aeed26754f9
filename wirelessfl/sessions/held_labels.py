"""The labels in the data of the present clients."""

from __future__ import annotations

from collections.abc import Callable, Collection

from wirelessfl.server.present import PresentClients


class HeldLabels:
    """The labels of the present clients of a session, found by the first client with each label.

    Clients only leave during a session, so the next client with a label comes after the one that
    left. A session therefore examines each client at most once per label, and few clients if labels
    are common.

    Args:
        labels_of: returns the labels in a client's data.
        labels: labels that clients can have.
    """

    def __init__(
        self, labels_of: Callable[[int], Collection[int]], labels: Collection[int]
    ) -> None:
        self._labels_of, self._labels = labels_of, labels
        self._present: PresentClients | None = None
        self._first_of: dict[int, set[int]] = {}
        """By client, the labels that no earlier present client has."""
        self.held: tuple[int, ...] = ()
        """Labels of the present clients, in increasing order; unchanged while none is present."""

    def opened(self, present: PresentClients, possible: Collection[int] | None) -> None:
        """Find the labels of a session's clients.

        Args:
            present: the present clients, from which clients that leave are removed.
            possible: labels that they can have; None for all.
        """
        self._present, self._first_of = present, {}
        self._search(set(self._labels if possible is None else possible), after=-1)

    def left(self, clients: Collection[int]) -> None:
        """Update the labels after these clients have been removed from the present clients."""
        for client in sorted(clients):
            if client in self._first_of:
                self._search(self._first_of.pop(client), after=client)

    def _search(self, wanted: set[int], after: int) -> None:
        """Find the first client with each wanted label, among those with larger numbers."""
        present = self._present
        assert present is not None, "a session is open"
        clients = present.after(after)
        while wanted and (client := next(clients, None)) is not None:
            if found := wanted.intersection(self._labels_of(client)):
                self._first_of.setdefault(client, set()).update(found)
                wanted -= found
        if len(present):
            self.held = tuple(sorted(set().union(*self._first_of.values())))
