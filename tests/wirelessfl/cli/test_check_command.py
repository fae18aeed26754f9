"""``wirelessfl check``."""

import json

from wirelessfl.cli.main import main

RULES = """
from dataclasses import dataclass
from wirelessfl.extend import Selection

@dataclass(frozen=True)
class First(Selection):
    skipped: int = 0

    def select(self, candidates):
        return candidates.smallest((candidates.clients + self.skipped) % 7)

@dataclass(frozen=True)
class Empty(Selection):
    def select(self, candidates):
        return candidates.clients[:0]
"""


def test_the_status_says_whether_contracts_hold(tmp_path, monkeypatch, capsys):
    (tmp_path / "chosen.py").write_text(RULES)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "./chosen.py:First", "--set", "skipped=1"]) == 0
    printed = capsys.readouterr()
    assert "  ok       trains three rounds\n" in printed.out
    assert printed.err.count("is biased") == 1, "one note, of many runs"
    assert main(["check", "chosen.py:First", "chosen.py:Empty", "--json"]) == 2
    first, empty = json.loads(capsys.readouterr().out)
    assert (first["passed"], empty["passed"]) == (True, False)
    reasons = [found["reason"] for found in empty["outcomes"] if found["status"] == "failed"]
    assert any("select returned 0 clients of cell 0 instead of 3" in text for text in reasons)
    assert main(["check", "chosen.py:First", "--set", "skipped"]) == 2
    assert "--set is 'skipped': write NAME=VALUE" in capsys.readouterr().err
    assert [*tmp_path.glob("runs*")] == []  # nothing is left behind
