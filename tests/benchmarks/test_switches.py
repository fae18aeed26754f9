"""The counter of switches between files, on a small program whose calls are known."""

import sys

from benchmarks.switches import Switches, main

ONE = """
import two

def twice():
    two.answer()
    return own()

def own():
    return sum(two.values()) + two.answer()
"""
TWO = """
def answer():
    return 42

def values():
    yield 1
    yield 2
"""


def test_switches_and_calls_of_a_known_program(tmp_path, monkeypatch):
    """By hand: twice | answer | own | three times values, answer | ends of own and twice."""
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "one.py").write_text(ONE)
    (folder / "two.py").write_text(TWO)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "one", raising=False)
    monkeypatch.delitem(sys.modules, "two", raising=False)
    switches = Switches(tmp_path, ("toy",))
    before = sys.getprofile()
    sys.setprofile(switches)
    try:
        import one

        one.twice()
    finally:
        sys.setprofile(before)
    # Files while importing: one, two, one. The call of twice() is therefore no switch.
    assert switches.imports == 3
    assert switches.count == 4
    assert switches.files == {"toy/one.py", "toy/two.py"}
    assert switches.calls == {
        ("", "toy/one.py", "twice"): 1,
        ("toy/one.py", "toy/two.py", "answer"): 2,
        ("toy/one.py", "toy/two.py", "values"): 3,  # two values and the end
    }


def test_the_counts_of_a_command_are_printed(capfd):
    assert main(["--list", "2", "list", "uplink"]) == 0
    first, second, *calls = capfd.readouterr().out.splitlines()[-4:]
    assert " switches between " in first
    assert "before the run is built" not in first
    assert second.endswith(" calls of a function of another file:")
    numbers = [int(line.split()[0]) for line in calls]
    assert len(numbers) == 2
    assert numbers[0] >= numbers[1] > 0
