"""Output of commands: any text, any stream, and streams that fail."""

import io
import os
import re
import sys
from pathlib import Path

import pytest
from rich.table import Table

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.ranks import launched
from wirelessfl.base.terminal import Terminal, escaped, say, standard_streams
from wirelessfl.cli import main

HOSTILE = "\x1b]0;title\x07\x1b[31mred\x9b2J\r"
SHOWN = r"\x1b]0;title\x07\x1b[31mred\x9b2J\x0d"


def test_control_characters_are_escaped(capsys):
    """In lines, on a console, in a bar's table; tabs, line ends and brackets stay."""
    assert escaped(f"a\tb\nc [bold] {HOSTILE}") == f"a\tb\nc [bold] {SHOWN}"
    assert escaped(os.fsdecode(b"caf\xe9")) == r"caf\xe9"
    say(HOSTILE)
    table = Table("name")
    table.add_row(f"[red]{HOSTILE}")
    Terminal(width=80).print(table)
    Terminal(stderr=True).tell(HOSTILE)
    out, err = capsys.readouterr()
    assert not {"\x1b", "\x07", "\x9b", "\r"} & {*out, *err}
    assert out.count("\\x1b]0;title") == 2
    assert "[red]" in out
    assert err == SHOWN.replace(r"\x07", "").replace(r"\x0d", "") + "\n"  # rich drops them


def test_characters_that_an_encoding_lacks_are_replaced(monkeypatch):
    """Lines of tables by ASCII, others by a question mark."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    with standard_streams():
        say("┏━┓ │ … é")
    assert out.errors == "strict"
    assert out.buffer.getvalue() == b"+-+ | . ?\n"


@pytest.mark.parametrize("words", [["list"], ["run", "--help", "all"], ["run", "hits"]])
def test_a_full_standard_output_is_one_line(words, monkeypatch, capsys):
    """It also is where the message of the error says it; errors have the status 2 as ever."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        failing = words != ["run", "hits"]
        assert main(words) == (1 if failing else 2)
        line = "OSError: standard output: No space left on device.\n"
        assert (capsys.readouterr().err == line) is failing


def test_streams_of_users_need_only_write_and_flush(monkeypatch, capsys):
    """As objects do that copy what is printed into a file."""

    class Copy:
        def __init__(self):
            self.text = ""

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    out, err = Copy(), Copy()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    assert main(["list", "uplink"]) == 0
    Terminal(stderr=True).tell("shown")
    assert "aircomp" in out.text
    assert err.text == "shown\n"


def test_a_closed_standard_output_ends_quietly(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["list"]) == 0
    assert capsys.readouterr().err == ""


def test_a_run_continues_if_its_display_fails(monkeypatch, capsys, tmp_path):
    words = "--dataset digits --clients 4 --rounds 2 --local-steps 1 --threads 1".split()
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert main(["run", "fedavg", *words, "--out", str(tmp_path / "run")]) == 0
    assert "fedavg" in capsys.readouterr().out
    assert len((tmp_path / "run" / "rows.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("rank", ["x", "2", "-1"])
def test_ranks_that_torchrun_does_not_set_are_refused(rank):
    with pytest.raises(ConfigError, match=f"RANK is '{rank}' and WORLD_SIZE '2': torchrun sets"):
        launched({"RANK": rank, "WORLD_SIZE": "2"})


def test_commands_write_by_say_and_terminal_alone():
    """Else text would reach the terminal with its control characters."""
    for file in Path(wirelessfl.cli.__file__).parent.glob("*.py"):
        assert not re.search(r"(?<![\w.])print\(|rich\.console|file=sys\.std", file.read_text()), (
            file
        )
