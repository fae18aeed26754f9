"""The demo at a few rounds: its table and its two figures."""

from experiments.demo import RUNS, demo


def test_the_demo_prints_its_table_and_draws_two_figures(tmp_path, capsys):
    summaries = demo(tmp_path, rounds=3)
    assert [s["label"] for s in summaries] == list(RUNS)
    assert all(s["round"] == 3 for s in summaries)
    traffic = [s["uplink_mib"] for s in summaries]
    assert traffic[0] > 3.9 * traffic[1]
    seconds = [s["sim_seconds"] for s in summaries]
    assert seconds[0] > seconds[1] > seconds[2] > 3 * seconds[3]
    assert "MiB per client" in capsys.readouterr().out
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "demo-accuracy-mib.pdf",
        "demo-accuracy-mib.png",
        "demo-accuracy-seconds.pdf",
        "demo-accuracy-seconds.png",
    ]
