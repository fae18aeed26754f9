"""Deadlines that cells cannot meet, and the shortfall."""

from __future__ import annotations

from typing import Literal, get_args

Late = Literal["error", "lost"]
"""What happens if not all clients of a cell can meet its deadline: an error, or the largest number
that can takes part."""


def check_late(late: str) -> None:
    """Raise unless ``late`` is known."""
    if late not in get_args(Late):
        raise ValueError(f"late is {late!r}: choose 'error' or 'lost'.")


class DeadlineMissedError(ValueError):
    """A cell cannot end by its deadline, even at full power and speed.

    Args:
        deadline: the deadline in seconds.
        needed: seconds that the cell needs.
        cell: number of the cell.
        client: number of its slowest client.
        alone: seconds that this client would need with the whole band of the cell.
        item: place of the cell in the leading axes of load and channel draw.
    """

    def __init__(
        self,
        deadline: float,
        needed: float,
        cell: int,
        client: int,
        alone: float,
        item: tuple[int, ...] = (),
    ) -> None:
        self.deadline, self.needed, self.alone = deadline, needed, alone
        self.cell, self.client, self.item = cell, client, item
        where = f" of item {[*item]}" if item else ""
        super().__init__(self.message("deadline_seconds", where=where))

    def message(self, setting: str, *, where: str = "", times: float = 1.0) -> str:
        """The error message, in terms of a setting.

        Args:
            setting: name of the setting that gives the deadline.
            where: which of the cell's local phases misses it.
            times: number of local phases that the setting covers.
        """
        deadline, needed, alone = (times * s for s in (self.deadline, self.needed, self.alone))
        return (
            f"{setting} is {deadline:g}: cell {self.cell}{where} needs {needed:.6g} s even at full "
            f"power and speed, {needed - deadline:.3g} s more; its slowest client, {self.client}, "
            f'needs {alone:.6g} s in the whole band. Raise {setting}, or choose late "lost".'
        )
