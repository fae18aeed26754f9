"""Figures of final values and costs against a setting, from stored runs."""

import pytest

from tests.drawn import legend, lines, marks, ticks
from wirelessfl import load_all
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.figures.curves import colour_of
from wirelessfl.base.figures.marks import BOUND, NOT_REACHED


@pytest.fixture
def swept(stored, tmp_path):
    """FedAvg with three step sizes and FedProx with two; two seeds each."""
    ends = {("fedavg", 0.01): (0.5, 0.6), ("fedavg", 0.1): (0.9, 0.7), ("fedavg", 0.2): (0.9, 0.9)}
    ends |= {("fedprox", 0.01): (0.4, 0.4), ("fedprox", 0.1): (0.8, 0.9)}
    for (algorithm, lr), each in ends.items():
        for seed, end in enumerate(each, start=1):
            stored(algorithm, (0.1, 0.2, end, end), lr=lr, seed=seed)
    return load_all(tmp_path / "runs")


def test_final_accuracies_against_a_setting(swept):
    figure = swept.plot_against("lr")
    (panel,) = figure.axes
    found = lines(panel)
    assert found["FedAvg"] == ([0.01, 0.1, 0.2], pytest.approx([55, 80, 90]))
    assert found["FedProx"] == ([0.01, 0.1], pytest.approx([40, 85]))
    assert panel.get_lines()[0].get_color() == colour_of("fedavg")
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("lr", "test accuracy (%)")
    assert ticks(panel) == ["0.01", "0.1", "0.2"]
    assert legend(figure) == ["FedAvg", "FedProx"]
    assert callable(figure._repr_png_), "notebooks show it"


def test_costs_against_a_setting_have_bounds_and_a_band(swept):
    """Two rounds take 4 s; a run that ends before the target has cost 6 s."""
    (panel,) = swept.plot_against("lr", target=0.8, cost="seconds").axes
    found = lines(panel)
    assert found["FedAvg"] == ([0.1, 0.2], [5, 4])
    assert found["FedProx"] == ([0.1], [4])
    assert [text.xy for text in panel.texts if text.get_gid() == BOUND] == [(0.1, 5)]
    assert marks(panel) == [(0.01, NOT_REACHED), (0.01, NOT_REACHED)]
    assert panel.get_ylabel() == "simulated time (s) to accuracy 0.8"
    (panel,) = swept.plot_against("algorithm", by="lr", target=0.8).axes
    assert ticks(panel) == ["fedavg", "fedprox"]
    assert list(lines(panel)) == ["lr 0.01", "lr 0.1", "lr 0.2"]


def test_scales_may_be_logarithmic(swept):
    """Ticks stay at the values."""
    (panel,) = swept.where(lr=[0.1, 0.2]).plot_against("lr").axes
    assert (panel.get_xscale(), panel.get_yscale()) == ("linear", "linear")
    (panel,) = swept.where(lr=[0.1, 0.2]).plot_against("lr", field="loss", log="xy").axes
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    assert ticks(panel) == ["0.1", "0.2"]
    with pytest.raises(ConfigError, match="log is 'z': choose x, y or xy"):
        swept.plot_against("lr", log="z")
    with pytest.raises(ConfigError, match="log is 'x', and algorithm is not > 0 in all runs"):
        swept.plot_against("algorithm", by="lr", log="x")


def test_names_end_with_units(stored, tmp_path):
    """In legends with the value, in headings and on axes with the name."""
    for band, snr in ((5e6, 0.0), (5e6, 10.0), (2e7, 0.0), (2e7, 10.0)):
        stored("fedavg", (0.1, 0.5), uplink="ofdma", bandwidth_hz=band, snr_db=snr)
    runs = load_all(tmp_path / "runs")
    figure = runs.plot_against("snr_db")
    assert figure.axes[0].get_xlabel() == "SNR (dB)"
    assert legend(figure) == ["bandwidth 5 MHz", "bandwidth 20 MHz"]
    assert [case.label for case in runs.cases("snr_db")] == ["SNR 0 dB", "SNR 10 dB"]
    assert runs.table("bandwidth_hz").headings["bandwidth_hz"] == "bandwidth (Hz)"
    assert r"bandwidth (Hz) & runs" in runs.table("bandwidth_hz").to_latex()


def test_unknown_settings_and_costs_are_refused(swept):
    with pytest.raises(ConfigError, match="unknown setting 'steps'"):
        swept.plot_against("steps")
    with pytest.raises(ConfigError, match=r"cost is 'second'\. Do you mean 'seconds'\? Choose"):
        swept.plot_against("lr", cost="second")
    with pytest.raises(ConfigError, match="tests is 0: give a number of tests >= 1"):
        swept.plot_against("lr", tests=0)
    with pytest.raises(ConfigError, match=r"target is 80: give an accuracy in \(0, 1\]"):
        swept.plot_against("lr", target=80)
