"""Examples in the docstrings of public names run, and give what they say; help is short."""

import ast
import doctest
import importlib
import importlib.util
import inspect
import pydoc
from pathlib import Path

import pytest

import wirelessfl

PACKAGES = (
    "channels",
    "channels.access",
    "channels.layouts",
    "channels.path_loss",
    "solvers",
    "solvers.access",
    "solvers.alignment",
    "solvers.bands",
    "solvers.beamforming",
    "solvers.energy",
    "solvers.joint",
    "solvers.mask_sizes",
    "solvers.resource_blocks",
    "solvers.widths",
    "wirelessfl",
    "wirelessfl.bridges",
    "wirelessfl.data",
    "wirelessfl.losses",
    "wirelessfl.metrics",
    "wirelessfl.observers",
    "wirelessfl.results",
)
NEEDS = {
    "solvers.beamforming.Sca": "cvxpy",
    "solvers.beamforming.Sdr": "cvxpy",
    "solvers.mask_sizes.Cvxpy": "cvxpy",
    "solvers.mask_sizes.Gurobi": "gurobipy",
    "wirelessfl.bridges.flower": "flwr",
    "wirelessfl.bridges.flower_split": "flwr_datasets",
    "wirelessfl.observers.MLflow": "mlflow",
    "wirelessfl.observers.TensorBoard": "tensorboard",
    "wirelessfl.observers.Trackio": "trackio",
    "wirelessfl.observers.WandB": "wandb",
    "wirelessfl.observers.tracker": "tensorboard",
}
"""Examples that need a package which users may lack."""


def public_names():
    """Classes and functions by the first of their public names.

    Constants and type aliases have no docstring of their own, and are left out.
    """
    found = {}
    for package in map(importlib.import_module, PACKAGES):
        for name in getattr(package, "__all__", dir(package)):
            thing = getattr(package, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                found.setdefault(thing, f"{package.__name__}.{name}")
    return {name: thing for thing, name in found.items()}


PUBLIC = public_names()


def has_example(thing):
    own = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__  # not a base's
    return ">>>" in (own or "")


def may_lack_example(thing):
    """Exceptions may, as users only catch them."""
    return inspect.isclass(thing) and issubclass(thing, Exception)


EXAMPLES = {name: thing for name, thing in PUBLIC.items() if has_example(thing)}


def run(name, thing):
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(verbose=False)
    for test in finder.find(thing, name, globs={}, module=False):
        runner.run(test)
    return runner.summarize(verbose=False)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_gives_what_it_says(name, tmp_path, monkeypatch):
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"needs {NEEDS[name]}")
    monkeypatch.chdir(tmp_path)
    results = run(name, EXAMPLES[name])
    assert results.attempted > 0
    assert results.failed == 0


def test_a_wrong_example_fails(capsys):
    def wrong():
        """>>> 1 + 1
        3
        """

    assert run("wrong", wrong).failed == 1


def test_every_public_name_has_an_example():
    missing = [
        name
        for name, thing in PUBLIC.items()
        if name not in EXAMPLES and not may_lack_example(thing)
    ]
    assert missing == []


def test_a_missing_example_is_seen():
    class Base:
        """>>> 1
        1
        """

    class Derived(Base):
        pass

    assert has_example(Base)
    assert not has_example(Derived)
    assert not may_lack_example(Derived)
    assert may_lack_example(ValueError)


def test_examples_that_need_packages_exist():
    assert {*NEEDS} <= {*EXAMPLES}


def help_of(thing):
    return pydoc.plain(pydoc.render_doc(thing)).splitlines()


def test_help_is_a_page_or_two_that_lists_every_name():
    lines = help_of(wirelessfl)
    assert len(lines) <= 150
    begins = {line.split()[0] for line in lines if line.startswith("        ")}
    assert {*dir(wirelessfl)} - {"__version__"} <= begins


def test_help_of_a_name_is_complete():
    assert "observers" in "\n".join(help_of(wirelessfl.run))
    members = [name for name in vars(wirelessfl.RunResult) if not name.startswith("_")]
    text = "\n".join(help_of(wirelessfl.RunResult))
    assert [name for name in members if name not in text] == []


def test_the_example_of_the_package_gives_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = run("wirelessfl", wirelessfl)
    assert results.attempted == 4
    assert results.failed == 0


def test_editors_see_the_names_that_python_does():
    tree = ast.parse(Path(wirelessfl.__file__).read_text())
    (names,) = (
        ast.literal_eval(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert {*names} == {*dir(wirelessfl)} - {"__version__"}
