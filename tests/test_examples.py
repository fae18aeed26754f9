"""Examples in the docstrings of public names run, and give what they say."""

import doctest

import pytest

import channels
import solvers
import wirelessfl

PACKAGES = (wirelessfl, channels, solvers)
EXAMPLES = {
    f"{package.__name__}.{name}": getattr(package, name)
    for package in PACKAGES
    for name in package.__all__
    if ">>>" in (getattr(package, name).__doc__ or "")
}
WITHOUT = {"Access", "Fading", "Layout", "PathLoss"}
"""Interfaces, whose examples are in docs/extending.md."""


def run(name, thing):
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(verbose=False)
    for test in finder.find(thing, name, globs={}, module=False):
        runner.run(test)
    return runner.summarize(verbose=False)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_gives_what_it_says(name, tmp_path, monkeypatch):
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


def test_every_name_of_wirelessfl_has_an_example():
    """And most of the other packages' names."""
    assert {f"wirelessfl.{name}" for name in wirelessfl.__all__} <= {*EXAMPLES}
    for package, most in ((channels, 0.6), (solvers, 0.3)):
        names = {*package.__all__} - WITHOUT
        having = {name for name in names if f"{package.__name__}.{name}" in EXAMPLES}
        assert len(having) >= most * len(names)
