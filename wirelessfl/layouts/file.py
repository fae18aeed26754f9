"""Positions from a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

import channels.layouts
from wirelessfl.errors import ConfigError
from wirelessfl.layouts.base import Placed


@dataclass(frozen=True)
class File(Placed):
    """Positions from a CSV file.

    Args:
        layout_file: CSV file with the columns kind (base_station or client), x_m, y_m and
            optionally cell, see ``channels.FileLayout``; required.
    """

    layout_file: Annotated[
        Path | None,
        Field(
            description="CSV file with the columns kind (base_station or client), x_m, y_m and "
            "optionally cell (required)"
        ),
    ] = None

    def build(self) -> channels.layouts.Layout:
        """See ``Placed``.

        Raises:
            ConfigError: no file is given.
        """
        if self.layout_file is None:
            raise ConfigError("layout is 'file', which needs layout_file: give it.")
        return channels.layouts.FileLayout(str(self.layout_file.expanduser()))
