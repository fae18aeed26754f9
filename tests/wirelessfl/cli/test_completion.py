"""Scripts that complete commands, flags and names, generated from the parser."""

import shutil
import subprocess

import pytest

from wirelessfl.algorithms import algorithm_classes
from wirelessfl.cli.completion import commands
from wirelessfl.cli.flags import all_flags
from wirelessfl.cli.main import _parser, main
from wirelessfl.config.choices import KINDS
from wirelessfl.data import dataset_names


@pytest.fixture(scope="module")
def known():
    return commands(_parser)


def test_every_command_flag_and_name_is_completed(known):
    assert {"run", "sweep", "resume", "list", "check", "doctor", "completion"} <= {*known}
    run = known["run"]
    assert list(run.first) == sorted(algorithm_classes())
    assert {flag.option for flag in all_flags()} <= {*run.flags}
    for kind, choices in KINDS.items():
        assert run.flags["--" + kind.replace("_", "-")] == sorted(choices.classes())
    assert run.flags["--dataset"] == dataset_names()
    assert run.flags["--weighting"] == ["uniform", "samples"]
    assert run.flags["--json"] is None  # takes no value
    assert run.flags["--rounds"] == []  # any value
    assert known["completion"].first == ["bash", "zsh", "fish"]


def script(shell, capsys):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is absent")
def test_bash_completes(tmp_path, capsys):
    """bash itself finds the words for several lines, in one process."""
    (tmp_path / "c.bash").write_text(script("bash", capsys))
    lines = [
        ("wirelessfl", "swe"),
        ("wirelessfl", "run", "fedp"),
        ("wirelessfl", "run", "fedavg", "--uplink", "o"),
        ("wirelessfl", "run", "fedavg", "--clients-p"),
        ("wirelessfl", "run", "fedavg", "--rounds", "x"),
        ("wirelessfl", "completion", "f"),
    ]
    asks = "".join(
        f"COMP_WORDS=({' '.join(line)}); COMP_CWORD={len(line) - 1}; _wirelessfl; "
        'echo "${COMPREPLY[@]}"\n'
        for line in lines
    )
    (tmp_path / "ask.bash").write_text(f"source {tmp_path}/c.bash\n{asks}")
    done = subprocess.run(
        ["bash", "--norc", tmp_path / "ask.bash"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    found = done.stdout.splitlines()
    assert found == ["sweep", "fedprox", "ofdma", "--clients-per-round", "", "fish"]


def test_scripts_of_other_shells(capsys):
    assert "bashcompinit" in script("zsh", capsys)
    fish = script("fish", capsys)
    assert "complete -c wirelessfl -n '__fish_seen_subcommand_from run' -l uplink -x -a " in fish
    for shell in ("zsh", "fish"):
        if shutil.which(shell):
            text = script(shell, capsys)
            subprocess.run([shell, "-n"], input=text, text=True, check=True)
