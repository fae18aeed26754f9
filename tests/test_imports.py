"""There are no import cycles, and no module imports from a higher layer."""

import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

from tests.imports.__main__ import PURPOSE
from tests.imports.graph import BUDGETS, LAYERS, ROOT, cycles, imports, layer_of

PUBLIC = {"wirelessfl", *(f"wirelessfl.{name}" for name in ("losses", "metrics", "observers"))}
"""Folders of public names, which are none of the rooms."""


def test_no_import_cycles_between_files():
    """There are none even with imports for type checking and inside functions."""
    assert cycles(imports()) == []


def test_imports_go_down():
    """A room imports only from lower floors, and a public name only from rooms below it."""
    upwards = [
        f"{module} -> {other}"
        for module, others in imports().items()
        for other in sorted(others)
        if layer_of(other)[0] <= layer_of(module)[0] and layer_of(other)[1] != layer_of(module)[1]
    ]
    assert upwards == []


def test_theory_is_a_leaf():
    """Only studies import the bounds of the papers."""
    assert {m for m, others in imports().items() for o in others if "wirelessfl.theory" in o} <= {
        m for m in imports() if m.startswith(("wirelessfl.theory", "experiments."))
    }


def test_rooms_are_within_their_budgets_of_lines():
    """If this fails: a new ability names what leaves, or the study that needs it."""
    lines = {
        name: sum(path.read_bytes().count(b"\n") for path in (ROOT / folder).rglob("*.py"))
        for name in BUDGETS
        for folder in [name.replace(".", "/")]
    }
    assert {name: count for name, count in lines.items() if count > BUDGETS[name]} == {}


def test_the_package_has_no_loose_modules():
    """Everything has a room, but the public names and the entry point."""
    loose = {path.name for path in (ROOT / "wirelessfl").glob("*.py")}
    assert loose <= {"__init__.py", "__main__.py", "extend.py"}


def test_the_drawing_has_all_folders():
    """If this fails: add the folder to PURPOSE and run ``python -m tests.imports``."""
    rooms = {name for names in LAYERS for name in names} - PUBLIC
    assert {name for name in rooms if (ROOT / name.replace(".", "/")).is_dir()} == set(PURPOSE)


def test_channels_and_solvers_work_alone():
    """Of the project's packages, channels imports none, and solvers imports only channels."""
    for module, others in imports().items():
        package = module.partition(".")[0]
        if package in ("channels", "solvers"):
            assert {other.partition(".")[0] for other in others} <= {package, "channels"}


def test_modules_that_mypy_skips_are_not_imported():
    """mypy treats names from skipped modules as Any, so the packages must not import them."""
    root = Path(__file__).parents[1]
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    overrides = settings["tool"]["mypy"]["overrides"]
    (skipped,) = [o["module"] for o in overrides if o.get("follow_imports") == "skip"]
    named = re.compile(r"^ *(?:from|import) ([\w.]+)", re.MULTILINE)
    found = {
        module
        for package in ("channels", "solvers", "wirelessfl", "benchmarks")
        for file in (root / package).rglob("*.py")
        for module in named.findall(file.read_text(encoding="utf-8"))
    }
    assert "torch" in found
    wrong = {m for m in found for pattern in skipped if fnmatchcase(f"{m}.", f"{pattern[:-1]}*")}
    assert wrong == set()


def test_cycles_are_found():
    """In a graph with cycles of three and of two nodes, both are found."""
    graph = {
        "a": frozenset("b"),
        "b": frozenset("c"),
        "c": frozenset("ad"),
        "d": frozenset("e"),
        "e": frozenset("d"),
        "f": frozenset("a"),
    }
    assert sorted(cycles(graph)) == [["a", "b", "c"], ["d", "e"]]
