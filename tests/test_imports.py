"""There are no import cycles, and no module imports from a higher layer."""

import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

from tests.imports.__main__ import PURPOSE
from tests.imports.graph import LAYERS, ROOT, cycles, folders, imports, layer_of


def test_no_import_cycles_between_files():
    """There are none even with imports for type checking and inside functions."""
    assert cycles(imports()) == []


def test_no_import_cycles_between_folders():
    """No folder imports itself through other folders."""
    assert cycles(folders()) == []


def test_imports_go_down():
    """Modules import from no higher layer, and docs/architecture.md has the same layers."""
    upwards = [
        f"{module} -> {other}"
        for module, others in imports().items()
        for other in sorted(others)
        if layer_of(other)[0] < layer_of(module)[0]
    ]
    assert upwards == []


def test_the_drawing_has_all_folders():
    """If this fails: add the folder to PURPOSE and run ``python -m tests.imports``."""
    known = {name for names in LAYERS for name in names if name != "wirelessfl"}
    assert {name for name in known if (ROOT / name.replace(".", "/")).is_dir()} == set(PURPOSE)


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
