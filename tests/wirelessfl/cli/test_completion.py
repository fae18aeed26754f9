"""Scripts that complete commands, flags and names, generated from the parser."""

import shutil
import subprocess

import pytest

from wirelessfl.cli import main


def script(shell, capsys):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is absent")
def test_bash_completes(tmp_path, capsys):
    """bash itself finds the words for several lines, in one process."""
    (tmp_path / "c.bash").write_text(script("bash", capsys))
    lines = {
        "wirelessfl swe": "sweep",
        "wirelessfl run fedp": "fedprox",
        "wirelessfl run fedavg --uplink o": "ofdma",
        "wirelessfl run fedavg --weighting u": "uniform",
        "wirelessfl run fedavg --clients-p": "--clients-per-round",
        "wirelessfl run fedavg --rounds x": "",
        "wirelessfl completion f": "fish",
    }
    asks = "".join(
        f"COMP_WORDS=({line}); COMP_CWORD={len(line.split()) - 1}; _shtab_wirelessfl; "
        'echo "${COMPREPLY[@]}"\n'
        for line in lines
    )
    (tmp_path / "ask.bash").write_text(f"source {tmp_path}/c.bash\n{asks}")
    done = subprocess.run(
        ["bash", "--norc", tmp_path / "ask.bash"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [*lines.values()]


def test_scripts_of_other_shells(capsys):
    assert "#compdef wirelessfl" in script("zsh", capsys)
    fish = script("fish", capsys)
    assert "-l uplink" in fish
    for shell in ("zsh", "fish"):
        if shutil.which(shell):
            text = script(shell, capsys)
            subprocess.run([shell, "-n"], input=text, text=True, check=True)
