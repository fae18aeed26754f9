"""``wirelessfl pilot``: what it prints, keeps and refuses."""

import json
from contextlib import suppress

import pytest

from wirelessfl.cli import main
from wirelessfl.designs.observed import Pilot

SMALL = "pilot hist --cells 2 --clients 4 --hidden 6 --batch-size 8 --threads 1 --steps 8".split()
SMALL += "--local-steps 1,3 --edge-rounds 1,2".split()


@pytest.fixture
def fits(monkeypatch):
    """The pilots and targets of fits; each fails with an error of the user."""
    from wirelessfl.base.errors import ConfigError

    found = []

    def fit(pilots, targets, **options):
        found.append((pilots, targets))
        raise ConfigError("no pilot reaches it.")

    monkeypatch.setattr("wirelessfl.designs.fit.fit_rounds", fit)
    return found


def test_pilots_are_printed_and_read_again(tmp_path, capsys, fits):
    """The second command reads them, for another radio too, and trains those of a further K."""
    assert main([*SMALL, "--target", "0.9", "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert "validation_fraction=0.1: held out" in printed.err
    assert "H 3, E 2: round 5  validation accuracy 0." in printed.err
    assert "4 trainings in" in printed.err
    assert "wall s: 4 now, 0 read" in printed.err
    assert printed.err.endswith("ConfigError: no pilot reaches it.\n")
    assert "pilots up to validation accuracy 0.9" in printed.out
    assert printed.out.count("> 5") == 3
    pilots, targets = fits[0]
    assert all(isinstance(one, Pilot) for one in pilots)
    assert targets == [0.9]
    more = ["--clients-per-round", "2,4", "--unequal-masks", "--uplink", "aircomp", "--json"]
    assert main([*SMALL, "--target", "0.9", "--out", str(tmp_path), *more]) == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["trainings"], found["trained"], found["kept"]) == (8, 4, 4)
    assert [row["clients"] for row in found["pilots"]] == [4, 4, 4, 4, 2, 2, 4, 4]
    assert found["pilots"][-1]["largest"] == 1.5
    assert found["wall_seconds"] == pytest.approx(
        sum(row["wall_seconds"] for row in found["pilots"])
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--rounds 5", "rounds=5 has no effect on pilots: give --steps for their length."),
        ("--eval-every 5", "eval_every=5 has no effect on pilots: leave it out."),
        ("--local-steps 1,x", "argument --local-steps: '1,x' is not a list of integers"),
        ("--air-snr-db 1,x", "argument --air-snr-db: '1,x' is not a list of numbers"),
        ("--pilots 2", "number of pilots is 2: give a whole number >= 3."),
        ("--jobs 0", "jobs is 0: give a whole number >= 1."),
        ("--clients-per-round 9", "clients_per_round=9"),
    ],
)
def test_wrong_flags_are_refused(words, message, tmp_path, capsys):
    out = tmp_path / "pilots"
    with suppress(SystemExit):  # argparse exits itself
        assert main([*SMALL, *words.split(), "--out", str(out)]) == 2
    printed = capsys.readouterr()
    assert message in printed.err.splitlines()[-1]
    assert printed.out == ""
    assert not out.exists()


def test_help_names_the_lists(capsys):
    with pytest.raises(SystemExit):
        main(["pilot", "hist", "--help"])
    printed = capsys.readouterr().out
    assert "usage: wirelessfl pilot hist" in printed
    assert "--unequal-masks" in printed
    assert "--air-snr-db" in printed
    assert "--local-steps N" in printed
