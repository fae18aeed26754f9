"""``wirelessfl design`` and the run of its design, from tiny pilots to realised and predicted."""

import json
from contextlib import suppress

import pytest

from wirelessfl.cli import main

SMALL = (
    "design hfedavg --cells 2 --clients 4 --hidden 8 --batch-size 16 --threads 1 --lr 0.1".split()
)
SMALL += "--split iid --pilot-steps 40 --pilots 4 --local-steps 2,4 --edge-rounds 1,2".split()
SMALL += "--draws 2 --uplink ofdma".split()


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_design_is_trained_and_compared(capsys):
    """With code of one's own, which the printed command trusts."""
    files = "--save design.toml --picture design.png".split()
    own = ["--loss", "tests.wirelessfl.models.losses.own_functions:per_sample"]
    assert main([*SMALL, *own, "--target", "0.3", *files]) == 0
    printed = capsys.readouterr()
    assert "4 pilots" in printed.out
    assert "what each choice bought" in printed.out
    tables = printed.out.partition("what each choice bought")[2].splitlines()[:-1]
    assert max(map(len, tables)) <= 80
    command = "run --config design.toml --trust"
    assert f"to train it: wirelessfl {command}\n" in printed.err
    lines = [line for line in printed.err.splitlines() if line.startswith("hfedavg: pilot ")]
    assert [line.partition(", ")[0] for line in lines] == [
        f"hfedavg: pilot {number} of 4" for number in (1, 2, 3, 4)
    ]
    assert {line.partition(", ")[2] for line in lines} == {
        f"H {h}, E {e}" for h in (2, 4) for e in (1, 2)
    }
    assert main([*SMALL, *own, "--target", "0.3", "--json"]) == 0
    printed = capsys.readouterr()
    facts = json.loads(printed.out)
    assert "4 read" in printed.err
    assert "hfedavg: pilot " not in printed.err
    assert main(f"{command} --json --out run".split()) == 0
    printed = capsys.readouterr()
    assert "round 1/" in printed.err
    assert "  validation accuracy 0." in printed.err  # that of the target
    assert "  accuracy " not in printed.err
    found = json.loads(printed.out)["predicted"]
    predicted = {name: pair["predicted"] for name, pair in found.items()}
    assert predicted == {name: facts["predicted"][name] for name in predicted}
    assert found["accuracy"]["realised"] >= 0.3
    assert "low" not in found["accuracy"]
    for name in ("rounds", "seconds", "joules"):
        ends = found[name]["low"], found[name]["high"]
        assert list(ends) == facts["predicted"][f"{name}_interval"]
    assert main("show run".split()) == 0
    table = capsys.readouterr().out.partition("the design and its run")[2]
    low, high = facts["predicted"]["joules_interval"]
    assert "90 % interval" in table
    assert f"{low:.4g} to {high:.4g}" in table


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("further", "message"),
    [
        ([], "no target and no budget"),
        (
            ["--target", "0.5", "--allocation", "optimal"],
            "allocation=optimal conflicts with design",
        ),
        (["--target", "x"], "argument --target: invalid float value: 'x'"),
        (["--target", "0.5", "--local-steps", "2,x"], "'2,x' is not a list of integers"),
        (["--target", "0.5", "--save", "design.txt"], "name a .toml file"),
        (["--target", "0.5", "--picture", "design.txt"], "name a .png or .pdf"),
        (["--target", "0.5", "--objective", "joules"], "joules alone"),
        (
            ["--target", "0.5", "--objective", "1,"],
            "'1,' is no objective: give seconds",
        ),
        (["--target", "0.5", "--pilots", "2"], "number of pilots is 2: give a whole number >= 3."),
        (["--target", "0.5", "--pilots", "4,8"], "argument --pilots: invalid int value: '4,8'"),
        (["--target", "0.5", "--jobs", "0"], "jobs is 0: give a whole number >= 1."),
        (["--target", "0.5", "--statistic", "mode"], "statistic is 'mode': give mean, median,"),
        (["--target", "0.5", "--statistic", "2"], "statistic is 2.0: give mean, median,"),
        (["--target", "0.5", "--rounds", "9"], "rounds=9 conflicts with design"),
    ],
)
def test_wrong_flags_are_refused_before_any_pilot(further, message, capsys, tmp_path):
    with suppress(SystemExit):  # argparse exits itself
        assert main([*SMALL, *further]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("command", ["design", "pilot"])
def test_help_lists_the_arguments_of_the_command_itself(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "hist", "--help"])
    own = capsys.readouterr().out.partition(f"\n{command}:\n")[2].partition("\nalgorithm hist:")[0]
    assert "--pilots N" in own
    assert "--lr" not in own
