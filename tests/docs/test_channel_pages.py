"""The page on channels from Sionna and MATLAB: its example runs, and gives what it says."""

import numpy as np

from tests.docs.pages import GUIDES, blocks


def test_the_channels_of_the_page_train_a_model(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    [code] = [
        code for language, _, code in blocks(GUIDES / "sionna-matlab.md") if language == "python"
    ]
    exec(compile(code, "sionna-matlab.md", "exec"), names)
    network, result = names["network"], names["result"]
    assert network.cell_of.tolist() == [0, 0, 0, 1, 1, 1]
    assert (network.fading.blocks, network.antennas) == (5, 4)
    distance_m = np.abs(names["clients_m"] - np.repeat(names["base_stations_m"], 3, axis=0))[:, 1]
    np.testing.assert_allclose(network.placement.distance_m, distance_m)
    assert result.rows[-1]["round"] == 2
    assert "distance" in capsys.readouterr().out
