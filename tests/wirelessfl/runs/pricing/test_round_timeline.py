"""Timelines of rounds: their times are those of the run, and the picture shows them."""

import json
from pathlib import Path

import numpy as np
import pytest

import wirelessfl
from tests.drawn import recorded
from tests.wirelessfl.runs.client_logs import SMALL, logged
from wirelessfl import Config
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli.main import main
from wirelessfl.data import load_dataset
from wirelessfl.engine.rounds.client_log import COLUMNS
from wirelessfl.runs.pricing.round_timeline import LINES, round_timeline
from wirelessfl.runs.timeline import timeline

CELLS = {"cells": 2, "edge_rounds": 2, "clients": 6, "local_steps": 2, "hidden": (4, 4)}


def of(algorithm="hfedavg", rounds=None, seconds=None, **settings):
    return round_timeline(Config.from_flags(algorithm, **CELLS | settings), rounds, seconds)


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("hfedavg", {"cells": 2, "order": "ready", "coherence": "edge-round"}),
        ("fedavg", {"uplink": "ofdma", "allocation": "optimal", "clients_per_round": 3}),
    ],
)
def test_it_has_the_client_log_of_the_run(algorithm, settings, tmp_path):
    result, log = logged(algorithm, tmp_path / "run", **settings)
    edge = {"edge_rounds": 2} if "cells" in settings else {}
    found = round_timeline(Config.from_flags(algorithm, **SMALL | settings | edge), rounds=2)
    for name in COLUMNS:
        np.testing.assert_allclose(found.log[name], log[name], rtol=1e-9, err_msg=name)
    assert found.seconds == pytest.approx(result.rows[-1]["sim_seconds"], rel=1e-12)
    assert found.summary()["rounds"] == 2


def test_in_order_of_readiness_one_client_of_a_cell_sends_at_a_time():
    (lap,) = of(order="ready", rounds=1).laps
    costs = lap.costs
    assert costs.in_order
    begins = (costs.download + costs.compute + costs.wait)[0]
    ends = begins + costs.send[0]
    for cell in range(2):
        its = np.flatnonzero(costs.cell == cell)
        its = its[begins[its].argsort()]
        assert (begins[its][1:] >= ends[its][:-1] - 1e-12).all()
        assert ends[its].max() == pytest.approx(costs.cell_seconds[0, cell])


def test_asynchronous_cells_begin_when_they_have_received_a_model():
    found = of(schedule="buffered", buffer=1, slowdown=2.0, rounds=4)
    merged = wirelessfl.price(
        Config.from_flags("hfedavg", **CELLS, schedule="buffered", buffer=1, slowdown=2.0), 4
    )
    ends = [lap.begin + lap.costs.seconds for lap in found.laps]
    np.testing.assert_allclose(ends, [row["sim_seconds"] for row in merged.rows[1:]])
    free = {}
    for lap, end in zip(found.laps, ends, strict=True):
        assert lap.begin == pytest.approx(free.get(lap.cell, 0.0))
        free[lap.cell] = end
    (busy,) = found.under_way
    assert busy.begin == pytest.approx(free.get(busy.cell, 0.0))


def test_rounds_or_seconds_decide_how_much_is_shown():
    assert len(of().laps) == 2
    whole = of(rounds=3)
    half = (whole.laps[1].begin + whole.laps[1].costs.seconds / 2) / 1
    found = of(seconds=half)
    assert (len(found.laps), found.seconds) == (2, half)
    assert len(of(rounds=1, seconds=half).laps) == 1


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"seconds": 0.0}, "seconds is 0.0: give a finite number > 0"),
        ({"seconds": "1"}, "seconds is '1': give a finite number > 0"),
        ({"rounds": 0}, "rounds is 0: give an integer >= 1"),
        ({"rounds": 10**6}, "rounds is 1000000: a timeline shows at most 1000. Give fewer"),
        ({"seconds": 1.0, "max_seconds": 1e-6}, "no round ends within max_seconds=1e-06"),
    ],
)
def test_wrong_values_are_refused(settings, told):
    with pytest.raises(ConfigError, match=told):
        of(**settings)


def test_seconds_with_too_many_rounds_are_refused(monkeypatch):
    """Rounds, and requests of a run of tasks, which only the simulation counts."""
    monkeypatch.setattr("wirelessfl.runs.pricing.round_timeline.MOST_ROUNDS", 3)
    with pytest.raises(ConfigError, match=r"seconds is 1000.0: .* than 3 rounds, .* Give at most"):
        of(seconds=1e3)
    with pytest.raises(ConfigError, match=r"rounds is 3, with .* than 3 rounds, .* Give fewer"):
        of(rounds=3, schedule="buffered", buffer=2)
    monkeypatch.setattr("wirelessfl.runs.timeline.MOST_SPANS", 9)
    requests = Config.from_flags("fedast", clients=4, requests=4, buffer=2)
    with pytest.raises(ConfigError, match=r"seconds is 1000.0: in .* more than 9 pieces of work"):
        timeline(requests, 1e3)


def bars(panel, name):
    """Rectangles [bars, corners, 2] of a kind."""
    (found,) = [each for each in panel.collections if each.get_label() == name]
    return np.array([path.vertices[:4] for path in found.get_paths()])


def test_the_picture_has_a_bar_for_each_thing_a_client_does(tmp_path):
    found = of(order="ready", rounds=2, backhaul_mbps=10.0)
    with recorded(laid_out=False) as figures:
        found.draw(tmp_path / "rounds.png")
    (panel,) = figures["rounds"].axes
    first = found.laps[0].costs
    computing = bars(panel, "computing")
    assert len(computing) == 2 * 2 * 6  # rounds, edge rounds, clients
    lengths = computing[:6, 1, 0] - computing[:6, 0, 0]
    np.testing.assert_allclose(lengths, first.compute[0], rtol=1e-6)
    outlines = bars(panel, "straggler")
    assert len(outlines) == 2 * 2
    assert outlines[:, 1, 0].max() == pytest.approx(found.seconds - first.after_seconds.max())
    names = [text.get_text() for text in panel.get_legend().get_texts()]
    assert names == ["computing", "waiting for the turn", "sending", "backhaul", "straggler"]
    assert panel.get_ylabel() == "6 clients"
    assert [tick.get_text() for tick in panel.get_yticklabels()][:4] == [
        "cell 0   0", "1", "2", "cell 1   3",
    ]  # fmt: skip


def test_of_many_clients_the_stragglers_are_shown(tmp_path):
    found = of("fedavg", clients=90, rounds=2, cells=None, edge_rounds=None)
    with recorded(laid_out=False) as figures:
        found.draw(tmp_path / "many.png")
    (panel,) = figures["many"].axes
    assert panel.get_ylabel() == f"{LINES} of 90 clients"
    assert len(bars(panel, "straggler")) == 2
    assert len(bars(panel, "sending in turns")) == 2 * LINES


def test_the_command_prints_where_the_time_goes(tmp_path, capsys):
    words = ["timeline", "hfedavg", "--clients", "6", "--cells", "2", "--rounds", "1"]
    words += ["--hidden", "4,4", "--picture", str(tmp_path / "a.png")]
    with recorded(laid_out=False):
        assert main(words) == 0
        out = capsys.readouterr().out
        assert main([*words, "--json"]) == 0
    assert out.startswith("a round takes ")
    assert "stragglers: client " in out
    summary = json.loads(capsys.readouterr().out)
    assert [cell["clients"] for cell in summary["cells"]] == [3, 3]


def test_by_default_the_figure_lies_in_a_folder_that_git_ignores(tmp_path, monkeypatch, capsys):
    """The command is tried in a checkout of the package, too."""
    monkeypatch.chdir(tmp_path)
    with recorded(laid_out=False):
        assert main(["timeline", "fedavg", "--clients", "2", "--hidden", "2", "--rounds", "1"]) == 0
    assert "drawn: results/timeline.png" in capsys.readouterr().out
    ignored = (Path(__file__).parents[4] / ".gitignore").read_text(encoding="utf-8").split()
    assert {f"/{path.name}/" for path in tmp_path.iterdir()} <= {*ignored}


def test_prices_and_data_have_one_line():
    prices = wirelessfl.price(Config.from_flags("fedavg", clients=3, rounds=2))
    last = prices.rows[-1]
    assert repr(prices) == (
        f"<Prices: 2 rounds in {last['sim_seconds']:.4g} s, {last['uplink_mib']:.4g} MiB up, "
        f"{last['joules']:.4g} J per client>"
    )
    assert repr(load_dataset("digits", None)) == (
        "<Dataset digits: 1,438 + 359 samples [1, 8, 8], 10 classes>"
    )
