"""Data volume of a run of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wirelessfl.tasks.delays import Elements
from wirelessfl.units import MIB_PER_ELEMENT


@dataclass(frozen=True)
class Traffic:
    """What the tasks' models and updates transmit.

    Args:
        names: names of the tasks.
        elements: [tasks], number of transmitted values per whole model.
        beside: [tasks], number of values that each update sends besides its payloads.
        clients: number of registered clients.
    """

    names: Sequence[str]
    elements: Sequence[Elements]
    beside: Sequence[int]
    clients: int

    def fields(
        self, up: Sequence[float], down: Sequence[float], returned: Sequence[int]
    ) -> dict[str, float]:
        """MiB per client of all tasks, by field of rows.

        Args:
            up: [tasks], number of returned updates; that of a submodel counts as a fraction.
            down: [tasks], number of models sent to clients; a submodel counts as a fraction.
            returned: [tasks], number of returned updates.
        """
        sent = sum(
            models * size.up + beside * count
            for models, size, beside, count in zip(
                up, self.elements, self.beside, returned, strict=True
            )
        )
        received = sum(models * size.down for models, size in zip(down, self.elements, strict=True))
        return {
            "uplink_mib": MIB_PER_ELEMENT * sent / self.clients,
            "downlink_mib": MIB_PER_ELEMENT * received / self.clients,
            "backhaul_mib": 0.0,
        }
