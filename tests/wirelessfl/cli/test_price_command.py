"""`wirelessfl price`: a run beside its price, and what it refuses."""

import json

import pytest

import wirelessfl
from wirelessfl.cli import main
from wirelessfl.config import Config

SMALL = {"dataset": "digits", "rounds": 2, "local_steps": 1, "hidden": (8,), "threads": 1}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("price") / "run"
    return wirelessfl.run(Config.from_flags("hist", cells=2, clients=4, **SMALL, out=folder))


def test_the_command_prints_the_price(run, capsys):
    words = ["price", str(run.directory), "--uplink", "ofdma", "--allocation", "optimal"]
    assert main([*words, "--bandwidth-hz", "2e6", "--target", "0.01", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = wirelessfl.price(
        run, network={"bandwidth_hz": 2e6}, uplink={"name": "ofdma", "allocation": "optimal"}
    )
    assert told["rows"] == found.rows
    assert [told["trained"], told["priced"]] == found.costs(0.01)
    assert told["changes"]["uplink.name"] == ["tdma", "ofdma"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "uplink ofdma instead of tdma" in shown
    assert "allocation: " in shown
    assert f"{found.rows[-1]['uplink_mib']:.4g}" in shown


def test_an_uplink_is_replaced_as_a_whole(run, capsys):
    """A flag of the uplink alone changes that of the run."""
    for words, order in ((["--order", "ready"], "ready"), (["--uplink", "tdma"], None)):
        assert main(["price", str(run.directory), *words, "--json"]) == 0
        changes = json.loads(capsys.readouterr().out)["changes"]
        assert changes.get("uplink.order", [None, None])[1] == order


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no setting of the radio is given"),
        (["--lr", "0.1"], "lr=0.1 changes the training"),
        (["--cells", "3"], "--cells 3 --out NEW"),
        (["--seed", "3"], "seed=3 changes"),
        (["--schedule", "buffered"], "schedule=buffered changes"),
        (["--mask-sizes", "optimized"], "mask_sizes=optimized changes"),
        (["--uplink", "aircomp"], "uplink=aircomp: the sums have errors"),
        (["--failures", "outage"], "failures=outage"),
        (["--uplink", "ofdma", "--round-deadline", "9", "--late", "lost"], "late=lost"),
        (["--snr-db", "x"], "snr_db"),
    ],
)
def test_refusals(run, words, message, capsys):
    assert main(["price", str(run.directory), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_folder_and_an_unknown_flag(run, tmp_path, capsys):
    assert main(["price", str(tmp_path / "none"), "--uplink", "ofdma"]) == 2
    assert "is not a run directory" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["price", str(run.directory), "--bandwith-hz", "3"])
    assert "--bandwidth-hz" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["price", str(run.directory), "--target", "high"])
    assert "--target: invalid float value: 'high'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["price", "--help"])
    shown = capsys.readouterr().out
    assert "usage: wirelessfl price RUN" in shown
    assert "--bandwidth-hz X" in shown
    assert "--lr" not in shown
