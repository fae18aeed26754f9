"""The demo with three rounds: its table and its two figures."""

from experiments.demo import RUNS, TARGET, demo, designed
from tests.drawn import AGAINST, legend, lines


def test_the_demo_prints_its_table_and_draws_two_figures(tmp_path, capsys, figures):
    summaries = demo(tmp_path, rounds=3)
    assert [s["label"] for s in summaries] == list(RUNS)
    assert all(s["round"] == 3 for s in summaries)
    traffic = [s["uplink_mib"] for s in summaries]
    assert traffic[0] > 3.9 * traffic[1]
    seconds = [s["sim_seconds"] for s in summaries]
    assert seconds[0] > seconds[1] > seconds[2] > 3 * seconds[3]
    assert "MiB/client" in capsys.readouterr().out
    assert set(figures) == {"demo-accuracy-mib", "demo-accuracy-seconds"}
    for name, against in (("mib", "uplink_mib"), ("seconds", "sim_seconds")):
        figure = figures[f"demo-accuracy-{name}"]
        (panel,) = figure.axes
        assert panel.get_xlabel() == AGAINST[against]
        assert list(lines(panel)) == legend(figure) == list(RUNS)
        ends = {label: x[-1] for label, (x, _) in lines(panel).items()}
        assert ends == {s["label"]: s[against] for s in summaries}
    assert panel.get_xscale() == "log"


def test_the_demo_designs_a_run_and_trains_it(tmp_path, capsys, monkeypatch):
    """The design's run reaches the target, and its predictions are printed beside it."""
    design, realised = designed(tmp_path, pilots=4, steps=400)
    assert design.predicted.accuracy == TARGET
    assert realised["accuracy"]["realised"] >= TARGET
    rounds = realised["rounds"]
    assert rounds["predicted"] / 3 < rounds["realised"] < 3 * rounds["predicted"]
    shown = capsys.readouterr().out
    assert "all equal" in shown
    assert f"{rounds['realised']:.4g}" in shown
