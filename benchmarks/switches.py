"""Counts the switches between files of the project in one command: how scattered its work is.

``python -m benchmarks.switches run hist --rounds 1 --dataset digits`` runs the command in this
process, and lists the most frequent calls of a function of another file. The counts do not depend
on the speed of the machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGES = ("channels", "solvers", "wirelessfl")
BUILDING = ("wirelessfl/runs/build/building.py", "build_resolved")
"""File and function with which the building of a run begins."""
MODULE = "<module>"
"""Name of the code that an import executes."""


@dataclass
class Switches:
    """Counts of a program, whose calls it receives from ``sys.setprofile``.

    An event is the call or the return of a function of the project; generators return and are
    called again at each value. A switch is an event in another file than the event before.

    Args:
        root: folder of the project.
        packages: packages of the project below ``root``.
        count: number of switches, apart from those of imports.
        imports: number of switches while a file of the project is imported.
        before: switches before the run is built; None while its building has not begun.
        files: files of which a function was called, apart from imports.
        calls: calls of a function of another file, by file of the caller, file and function; apart
            from imports. The caller is the nearest one of the project.
    """

    root: Path = ROOT
    packages: Sequence[str] = PACKAGES
    count: int = 0
    imports: int = 0
    before: int | None = None
    files: set[str] = field(default_factory=set)
    calls: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _last: str = ""
    _importing: int = 0
    _names: dict[str, str] = field(default_factory=dict)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Count an event."""
        code = frame.f_code
        name = self._name(code.co_filename)
        if not name or event not in ("call", "return"):
            return
        if code.co_name == MODULE:
            self._importing += 1 if event == "call" else -1
        if self._importing or code.co_name == MODULE:
            self.imports += name != self._last
        else:
            if event == "call":
                self._called(frame, name)
            self.count += name != self._last
        self._last = name

    def _called(self, frame: FrameType, name: str) -> None:
        """Count the call of a function."""
        code, caller = frame.f_code, self._caller(frame)
        self.files.add(name)
        if caller != name:
            self.calls[caller, name, code.co_qualname] += 1
        if self.before is None and (name, code.co_name) == BUILDING:
            self.before = self.count

    def _caller(self, frame: FrameType) -> str:
        """The file of the nearest calling function of the project; "" if there is none."""
        caller = frame.f_back
        while caller is not None:
            name = self._name(caller.f_code.co_filename)
            if name:
                return name
            caller = caller.f_back
        return ""

    def _name(self, file: str) -> str:
        """The path of a file of the project below its root; "" for other files."""
        if file not in self._names:
            path = Path(file)
            below = path.relative_to(self.root) if path.is_relative_to(self.root) else Path(".")
            inside = below.parts[:1] and below.parts[0] in self.packages
            self._names[file] = below.as_posix() if inside else ""
        return self._names[file]

    def lines(self, longest: int = 25) -> list[str]:
        """The counts as text.

        Args:
            longest: number of calls to list.
        """
        text = f"{self.count} switches between {len(self.files)} files"
        if self.before is not None:
            text += f", {self.before} ({self.before / self.count:.0%}) before the run is built"
        return [
            f"{text}; imports: {self.imports}",
            f"{sum(self.calls.values())} calls of a function of another file:",
            *(
                f"{number:7}  {caller or 'outside'} -> {callee}, {function}"
                for (caller, callee, function), number in self.calls.most_common(longest)
            ),
        ]


def counted(words: Sequence[str]) -> tuple[int, Switches]:
    """Run a command in this process, and count its switches.

    Args:
        words: the command and its flags, such as ``["run", "hist", "--rounds", "1"]``.

    Returns:
        The exit status, and the counts.
    """
    switches = Switches()
    sys.setprofile(switches)
    try:
        from wirelessfl.cli.main import main  # an import, which is counted

        return main(words), switches
    finally:
        sys.setprofile(None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and print its counts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.switches", description=__doc__)
    parser.add_argument(
        "--list", type=int, default=25, metavar="N", help="number of calls to list (default: 25)"
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, help="a command and its flags")
    parsed = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        words = list(parsed.words)
        if words[:1] == ["run"] and "--out" not in words:
            words += ["--out", str(Path(folder, "run"))]
        status, switches = counted(words)
    print(*switches.lines(parsed.list), sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
