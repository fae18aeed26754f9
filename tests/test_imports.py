"""Imports go one way: no circle between files or folders, and no folder reaches up."""

import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

from tests.imports.graph import circles, floor_of, folders, imports


def test_no_circle_between_files():
    """Imports for types count, and those inside functions."""
    assert circles(imports()) == []


def test_no_circle_between_folders():
    """Every folder can be read after those that it stands on."""
    assert circles(folders()) == []


def test_imports_go_down():
    """In the order of FLOORS, which is that of docs/architecture.md."""
    upwards = [
        f"{module} -> {other}"
        for module, others in imports().items()
        for other in sorted(others)
        if floor_of(other)[0] < floor_of(module)[0]
    ]
    assert upwards == []


def test_channels_and_solvers_stand_alone():
    """They import nothing of ours but, in solvers, channels."""
    for module, others in imports().items():
        package = module.partition(".")[0]
        if package in ("channels", "solvers"):
            assert {other.partition(".")[0] for other in others} <= {package, "channels"}


def test_types_that_are_not_read_are_not_ours():
    """mypy takes what it does not follow for Any: nothing of ours imports from there."""
    root = Path(__file__).parents[1]
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    overrides = settings["tool"]["mypy"]["overrides"]
    (skipped,) = [o["module"] for o in overrides if o.get("follow_imports") == "skip"]
    named = re.compile(r"^ *(?:from|import) ([\w.]+)", re.MULTILINE)
    found = {
        module
        for package in ("channels", "solvers", "wirelessfl")
        for file in (root / package).rglob("*.py")
        for module in named.findall(file.read_text(encoding="utf-8"))
    }
    assert "torch" in found
    wrong = {m for m in found for pattern in skipped if fnmatchcase(f"{m}.", f"{pattern[:-1]}*")}
    assert wrong == set()


def test_circles_are_found():
    """The search itself, on a graph with one circle of three and one of two."""
    graph = {
        "a": frozenset("b"),
        "b": frozenset("c"),
        "c": frozenset("ad"),
        "d": frozenset("e"),
        "e": frozenset("d"),
        "f": frozenset("a"),
    }
    assert sorted(circles(graph)) == [["a", "b", "c"], ["d", "e"]]
