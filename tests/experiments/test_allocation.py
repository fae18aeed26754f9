"""``python -m experiments.allocation``: no rule beats the optimum; table, page and figure."""

import numpy as np
import pytest

from channels.streams import Stream
from experiments.allocation import __main__ as command
from experiments.allocation import baselines, resource_blocks, study
from experiments.allocation.networks import NETWORKS, drawn
from tests.drawn import finished, titles
from wirelessfl.base.errors import ConfigError
from wirelessfl.data import load_dataset


@pytest.fixture(scope="module")
def found():
    return study.measure(6, greedy=2)


def test_no_rule_beats_the_optimum(found):
    """Gaps are at least 0 up to the bound of the optimum, in all networks."""
    assert len(found) == len(NETWORKS) * (3 + 4 + 3 + 3 + 3)
    for gap in found:
        assert gap.bound < 1e-6
        assert gap.median >= gap.low >= -1e-4
        assert gap.high >= gap.median
    by_rule = {(gap.network, gap.baseline): gap.median for gap in found}
    assert all(0 <= by_rule[network, "two blocks"] < np.inf for network in NETWORKS)
    for network in NETWORKS:
        assert (
            by_rule[network, "best channels, best bands"]
            <= by_rule[network, "best channels, equal bands"]
        )
        assert by_rule[network, "alternation"] <= by_rule[network, "equal bands, best power"]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("network", "cycles", "gains"),
    [
        ("Section VI-C", 1e6, (10, 6, 14)),
        ("Section VI-C", 1e8, (27, 15, 37)),
        ("disc", 1e6, (21, 45, 50)),
        ("disc", 1e8, (15, 21, 32)),
    ],
)
def test_joint_designs_gain_what_a_prototype_gained(network, cycles, gains):
    """Shorter rounds with the best sizes, the best bands and both, in percent; medians."""
    cells = drawn(network, 800)
    cells = cells._replace(cycles=np.full(cells.cycles.shape, 20 * cycles))
    joint, rules = study.STUDIES["least seconds of four cells"](cells, 1)
    even = rules["equal sizes, equal bands"]
    found = [rules["best sizes, equal bands"], rules["equal sizes, best bands"], joint.objective]
    assert [100 * np.median(1 - one / even) for one in found] == pytest.approx(gains, abs=2.5)


def test_selection_in_the_disc_takes_as_long_as_in_a_prototype():
    optimum, rules = study.STUDIES["least seconds of a quarter"](drawn("disc", 400), 1)
    assert np.mean(optimum.objective) == pytest.approx(0.858, rel=0.04)
    wanted = {
        "best channels, best bands": 0.883,
        "best channels, equal bands": 1.083,
        "random, equal bands": 2.005,
    }
    for rule, seconds in wanted.items():
        assert np.mean(rules[rule]) == pytest.approx(seconds, rel=0.04)


def test_rules_keep_their_limits():
    """Bands sum to the band, windows end in time, and full power suffices."""
    cells = drawn("macro cell", 5)
    deadline = 1.5 * baselines.seconds_of_equal_bands(cells)
    bands = baselines.equal_bands(cells)
    window = baselines.best_windows(cells, bands, deadline)
    least = baselines.least_bands(cells, window)
    better = baselines.best_bands(cells, window, least)
    assert (better.sum(-1) <= cells.bandwidth_hz * (1 + 1e-9)).all()
    assert (better >= least * (1 - 1e-12)).all()
    assert (window + cells.compute_seconds <= deadline[:, None] * (1 + 1e-12)).all()
    joules = [baselines.joules(cells, one, window, deadline).sum() for one in (better, bands)]
    assert joules[0] < joules[1]


def test_greedy_selection_adds_the_client_that_ends_soonest():
    cells = drawn("disc", 3)
    chosen, end = baselines.greedy_selection(cells, 2)
    for row in range(3):
        one = baselines.Cells(*(array[row : row + 1] for array in cells[:4]), *cells[4:])
        first = np.argmin(
            cells.compute_seconds[row]
            + baselines.upload_seconds(one, np.full(one.bits.shape, cells.bandwidth_hz))[0]
        )
        assert chosen[row, 0] == first
    assert (np.sort(chosen, -1)[:, 0] != np.sort(chosen, -1)[:, 1]).all()
    assert (end > 0).all()


def test_the_page_has_the_table_of_the_stored_gaps():
    """If this fails: ``python -m experiments.allocation --make`` measures and writes the page."""
    text = command.PAGE.read_text(encoding="utf-8")
    assert command.page(study.load(), resource_blocks.load(), text) == text
    assert all(
        gap.cells in (study.PROBLEMS, study.PROBLEMS // study.GROUP, 100) for gap in study.load()
    )
    with pytest.raises(ConfigError, match="needs a line"):
        command.page([], [], "no marks")


def test_the_figure_shows_the_gaps(found):
    figure = finished(command.draw(found))
    *panels, legend = figure.axes
    assert len({(panel.get_yscale(), panel.get_ylim()) for panel in panels}) == 1
    assert [text.get_text() for text in legend.get_legend().get_texts()] == [*NETWORKS]
    assert titles(figure)[:-1] == [command.TITLES[quantity] for quantity in study.STUDIES]
    for panel, quantity in zip(panels, study.STUDIES, strict=True):
        for network, one in zip(NETWORKS, panel.containers, strict=True):
            shown = one.lines[0].get_ydata()
            wanted = [
                gap.median for gap in found if (gap.network, gap.quantity) == (network, quantity)
            ]
            assert shown == pytest.approx(wanted)


@pytest.mark.thorough
def test_the_command_prints_and_saves(monkeypatch, tmp_path, capsys, found):
    """With few cells it measures anew and leaves the stored gaps alone."""
    monkeypatch.setattr(command, "measure", lambda cells: found)
    before = study.FILE.read_bytes()
    assert command.main(["--cells", "4", "--out", str(tmp_path)]) == 0
    assert "| energy of a round before a deadline | alternation |" in capsys.readouterr().out
    assert (tmp_path / "allocation.png").is_file()
    assert command.main([]) == 0
    text = command.PAGE.read_text(encoding="utf-8")
    assert all(part.strip() in text for part in capsys.readouterr().out.split("\n\n"))
    assert study.FILE.read_bytes() == before
    assert command.main(["--cells", "0"]) == 2
    assert "cells is 0" in capsys.readouterr().err
    assert command.main(["--cells", "8", "--blocks"]) == 2
    assert "leave out --cells or --blocks" in capsys.readouterr().err


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("blocks", [3, 12])
def test_the_best_assignment_expects_the_most_samples(blocks):
    """No other of many matchings does, and all rules use a block at most once."""
    dice = np.random.default_rng(blocks)
    arrives = resource_blocks.received(blocks, dice)
    assert ((arrives >= 0) & (arrives <= 1)).all()
    assert (arrives == 0).any()  # late, or too dear
    samples = {
        name: [resource_blocks.SAMPLES @ rule(arrives, dice) for _ in range(200)]
        for name, rule in resource_blocks.RULES.items()
    }
    best = samples["best assignment"][0]
    for name, values in samples.items():
        assert max(values) <= best * (1 + 1e-12), name
    assert np.mean(samples["random"]) < np.mean(samples["its clients, random blocks"]) < best
    for rule in resource_blocks.RULES.values():
        assert np.count_nonzero(rule(arrives, dice)) <= blocks


def test_clients_whose_packets_arrive_train_the_model(monkeypatch):
    """On digits: all packets teach, and without any the model stays as it was."""
    monkeypatch.setattr(resource_blocks, "STEP_SIZE", 0.3)
    monkeypatch.setattr(resource_blocks, "SAMPLES", np.array([100, 200, 300]))
    data, stream = load_dataset("digits"), Stream(0)
    learnt, same, start = (
        resource_blocks.accuracy(np.full(3, p), data, stream, rounds=n)
        for p, n in ((1.0, 40), (0.0, 40), (1.0, 0))
    )
    assert same == start < 0.3
    assert learnt > 0.8
