"""The layers of the package, and its imports as a graph."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("channels", "solvers", "wirelessfl", "benchmarks", "experiments")
LAYERS: tuple[tuple[str, ...], ...] = (
    ("experiments", "benchmarks"),
    ("wirelessfl.__main__",),
    ("wirelessfl.cli",),
    (
        "wirelessfl",
        "wirelessfl.extend",
        "wirelessfl.losses",
        "wirelessfl.metrics",
        "wirelessfl.observers",
    ),
    ("wirelessfl.results", "wirelessfl.designs", "wirelessfl.theory", "wirelessfl.bridges"),
    ("wirelessfl.runs",),
    ("wirelessfl.config",),
    ("wirelessfl.engine",),
    ("wirelessfl.air", "wirelessfl.algorithms"),
    ("wirelessfl.training",),
    ("wirelessfl.models",),
    ("wirelessfl.data",),
    ("wirelessfl.base",),
    ("solvers",),
    ("channels",),
)
"""Packages, rooms and public names from the top down: each imports only from lower layers."""
BUDGETS: dict[str, int] = {
    "wirelessfl.bridges": 530,
    "wirelessfl.cli": 3600,
    "wirelessfl.results": 4620,
    "wirelessfl.designs": 5820,
    "wirelessfl.theory": 2350,
    "wirelessfl.runs": 13590,
    "wirelessfl.config": 4100,
    "wirelessfl.engine": 11540,
    "wirelessfl.air": 5530,
    "wirelessfl.algorithms": 3630,
    "wirelessfl.training": 6370,
    "wirelessfl.models": 5090,
    "wirelessfl.data": 6020,
    "wirelessfl.base": 3830,
}
"""Lines that each room may have: what it has, plus five per cent."""
Graph = Mapping[str, frozenset[str]]


@cache
def files() -> dict[str, Path]:
    """All files of the packages, by module name."""
    return {_module(path): path for name in PACKAGES for path in (ROOT / name).rglob("*.py")}


@cache
def imports() -> dict[str, frozenset[str]]:
    """The modules of these packages that each module imports, also inside functions."""
    return {module: frozenset(_imported(module, path)) for module, path in files().items()}


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(module: str, path: Path) -> set[str]:
    known, found = files(), set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = names & known.keys()
            found |= modules
            if len(modules) < len(names):
                found.add(str(node.module))
    return (found & known.keys()) - {module}


def layer_of(module: str) -> tuple[int, str]:
    """The layer of a module, and its folder or file in that layer."""
    found = [
        (len(name), layer, name)
        for layer, names in enumerate(LAYERS)
        for name in names
        if module == name or (name != "wirelessfl" and module.startswith(f"{name}."))
    ]
    assert found, f"{module} has no layer: add its folder to LAYERS"
    _, layer, name = max(found)
    return layer, name


def cycles(graph: Graph) -> list[list[str]]:
    """Groups of nodes on common cycles (strongly connected components, by Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[-len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in graph:
        if node not in index:
            visit(node)
    return found
