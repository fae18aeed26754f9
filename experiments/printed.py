"""The figures and tables that a paper prints, and the command that shows each here.

``printed.toml`` of a paper's folder has an entry for each, in the order of the paper.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

FIDELITIES = {
    "published": "published setting",
    "released": "released code's setting",
    "hyper-parameters": "other hyper-parameters",
    "stand-in": "stand-in data or model",
    "computed": "computed",
}
"""How near runs are to those of the paper, the nearest first."""
KINDS = {"fig": "Figure", "table": "Table"}


@dataclass(frozen=True)
class Printed:
    """A figure or table of a paper.

    Args:
        name: its name as a command, such as ``fig6`` and ``table1``; a panel has its letter.
        content: what it shows.
        shown: the experiment, text or action that shows it here; "" for the one called ``name``.
        fidelity: how near its runs at scale ``small`` are to the paper's, see ``FIDELITIES``.
        absent: why nothing shows it here; "" if something does.
    """

    name: str
    content: str
    shown: str = ""
    fidelity: str = ""
    absent: str = ""

    @property
    def number(self) -> str:
        """Its number as printed, as in ``Figure 6`` and ``Table 1``."""
        kind, number = _parts(self.name)
        return f"{KINDS[kind]} {number}"

    @property
    def command(self) -> str:
        """The name of the experiment, text or action that shows it; "" for none."""
        return "" if self.absent else self.shown or self.name


def printed_of(folder: Path) -> dict[str, Printed]:
    """The figures and tables of the paper of a folder, by name; none without ``printed.toml``."""
    file = folder / "printed.toml"
    if not file.is_file():
        return {}
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    return {name: Printed(name, **fields) for name, fields in tables.items()}


def numbered(name: str) -> bool:
    """Whether a name is that of a figure or table with a number."""
    return re.fullmatch(r"(fig|table)\d+[a-z]?", name) is not None


def ranges(printed: dict[str, Printed]) -> str:
    """What a paper prints, as in ``Figures 1 to 8 and Tables 1 and 2``."""
    parts = []
    for kind, title in KINDS.items():
        numbers = {int(re.sub(r"\D", "", name)) for name in printed if _parts(name)[0] == kind}
        first, last = min(numbers, default=0), max(numbers, default=0)
        if numbers:
            to = "to" if last > first + 1 else "and"
            parts.append(f"{title}s {first} {to} {last}" if last > first else f"{title} {first}")
    return " and ".join(parts)


def _parts(name: str) -> tuple[str, str]:
    """Kind and number of a name."""
    kind = "fig" if name.startswith("fig") else "table"
    return kind, name.removeprefix(kind)
