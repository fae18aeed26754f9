"""Path loss of flying base stations and clients: published optima, formulas by hand, heights."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from channels import (
    AirToGround,
    FileLayout,
    LogDistance,
    Positions,
    Ring,
    Stream,
    Tr36814,
    UmaAv,
    Variant,
    placed_network,
)


def mean_db(model, metres):
    clear = model.los_probability(metres)
    return clear * model.loss_db(metres, True) + (1 - clear) * model.loss_db(metres, False)


@pytest.mark.parametrize(
    ("surroundings", "published"),
    [("suburban", 20.34), ("urban", 42.44), ("dense-urban", 54.62), ("highrise", 75.52)],
)
def test_published_optimal_elevations(surroundings, published):
    """Of a given radius, the altitude of the least mean loss (Al-Hourani et al., 2014, Fig. 3)."""

    def loss(degrees):
        height = 1000 * math.tan(math.radians(degrees))
        return float(mean_db(AirToGround(2.0, height, 0.0, surroundings), 1000.0))

    best = minimize_scalar(loss, (5, 80), bounds=(2, 87), method="bounded")
    assert best.x == pytest.approx(published, abs=0.01)


def test_air_to_ground_by_hand():
    """45 degrees of elevation in urban surroundings at 2 GHz, and right below."""
    model = AirToGround(2.0, 301.5, 1.5)
    clear = 1 / (1 + 9.61 * math.exp(-0.16 * (45 - 9.61)))
    assert model.los_probability(300.0) == pytest.approx(clear, rel=1e-12)
    free = 20 * math.log10(4 * math.pi * 2e9 / 299_792_458 * math.hypot(300, 300))
    np.testing.assert_allclose(model.loss_db(300.0, [True, False]), [free + 1, free + 20])
    assert model.los_probability(1.0) == pytest.approx(1, abs=1e-4)
    # At 2 GHz, free space loses 38.47 dB in the first metre.
    assert model.loss_db(1.0, True) == pytest.approx(38.47 + 20 * math.log10(300) + 1, abs=5e-3)


@pytest.mark.parametrize("height", [22.5, 60.0, 100.0, 150.0])
@pytest.mark.parametrize("metres", [15.0, 400.0, 3000.0])
def test_uma_av_by_hand(metres, height):
    """TR 36.777, Tables B-1 to B-3, written out; above 100 m all have a line of sight."""
    model, d3 = UmaAv(2.0, 25.0, height), math.hypot(metres, height - 25)
    decay = 4300 * math.log10(height) - 3800
    near = max(460 * math.log10(height) - 700, 18)
    clear = 1.0
    if height <= 100 and metres > near:
        clear = near / metres + math.exp(-metres / decay) * (1 - near / metres)
    assert model.los_probability(metres) == pytest.approx(clear, rel=1e-12)
    los = 28 + 22 * math.log10(d3) + 20 * math.log10(2)
    nlos = -17.5 + (46 - 7 * math.log10(height)) * math.log10(d3)
    nlos += 20 * math.log10(40 * math.pi * 2 / 3)
    np.testing.assert_allclose(model.loss_db(metres, [True, False]), [los, nlos], rtol=1e-12)
    std = model.shadowing_std_db(metres, [True, False])
    np.testing.assert_allclose(std, [4.64 * math.exp(-0.0066 * height), 6.0])


def test_networks_have_the_mean_loss():
    """4000 clients at one distance: the standard error is a fourth of the tolerance."""
    model = AirToGround(2.0, 200.0, 1.5, "dense-urban")
    radio = {"cells": 1, "clients": 4000, "stream": Stream(1), "cpu_hz": 1e9}
    where = placed_network(Ring(250.0), model, **radio).placement
    clear = float(model.los_probability(250.0))
    error = 21.4 * math.sqrt(clear * (1 - clear) / 4000)
    assert error < 0.25 * 1.4
    assert where.path_loss_db.mean() == pytest.approx(float(mean_db(model, 250.0)), abs=1.4)


def test_positions_have_heights():
    """Each cell and client has its own; without heights, those of the path loss hold."""
    stations = [[0, 0, 100], [1000, 0, 300]]
    clients = [[100, 0, 0], [0, 50, 20], [1000, 200, 10]]
    radio = {"stream": Stream(1), "cpu_hz": 1e9}
    model = Variant(AirToGround(2.0, 50.0, 1.5), line_of_sight=True)
    where = placed_network(Positions(stations, clients, [0, 0, 1]), model, **radio).placement
    apart = [math.hypot(100, 100), math.hypot(50, 80), math.hypot(200, 290)]
    expected = 20 * np.log10(4 * math.pi * 2e9 / 299_792_458 * np.array(apart)) + 1
    np.testing.assert_allclose(where.path_loss_db, expected, rtol=1e-12)
    assert where.distance_m.tolist() == [100, 50, 200]
    assert where.base_stations_m.shape == (2, 3)
    flat = Positions(stations, np.array(clients)[:, :2], [0, 0, 1])
    where = placed_network(flat, model, **radio).placement
    at = math.hypot(100, 98.5)
    loss = 20 * math.log10(4 * math.pi * 2e9 / 299_792_458 * at) + 1
    assert where.path_loss_db[0] == pytest.approx(loss, rel=1e-12)
    # Links to other cells, of interference and association, have these heights too.
    near = placed_network(
        Positions(stations, clients, [0, 0, 1]),
        model,
        association="strongest",
        reuse_factor=1,
        **radio,
    )
    assert near.cell_of.tolist() == [0, 0, 1]
    far = 20 * math.log10(4 * math.pi * 2e9 / 299_792_458 * math.hypot(900, 300)) + 1
    assert -10 * np.log10(near.interference.gain[0, 1]) == pytest.approx(far, rel=1e-12)


def test_files_have_heights(tmp_path):
    file = tmp_path / "places.csv"
    rows = ["kind,x_m,y_m,z_m", "base_station,0,0,120", "client,30,40,", "client,0,20,"]
    file.write_text("\n".join(rows))
    where = FileLayout(file).place(None, None, Stream(1))
    assert where.base_stations_m.tolist() == [[0, 0, 120]]
    assert where.clients_m.shape == (2, 2)
    assert where.distance_m.tolist() == [50, 20]
    file.write_text("\n".join([*rows, "client,1,1,5"]))
    with pytest.raises(ValueError, match="line 5: z_m is given for some rows of kind client"):
        FileLayout(file).place(None, None, Stream(1))


@pytest.mark.parametrize("model", [LogDistance(), Tr36814(), Variant(Tr36814(), shadowing_db=0.0)])
def test_models_without_heights_refuse_them(model):
    high = Positions([[0, 0, 100]], [[100, 0]], [0])
    name = type(getattr(model, "model", model)).__name__
    with pytest.raises(ValueError, match=f"{name} has no base_station_height_m: give positions"):
        placed_network(high, model, stream=Stream(1), cpu_hz=1e9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AirToGround(base_station_height_m=5.0), "give 10 to 20000 metres"),
        (
            lambda: AirToGround(base_station_height_m=15.0, client_height_m=20.0),
            "above its clients",
        ),
        (
            lambda: AirToGround(surroundings="city"),
            "surroundings is 'city': choose suburban, urban",
        ),
        (
            lambda: UmaAv(client_height_m=1.5),
            "give 22.5 to 300 metres. Lower clients have the model",
        ),
    ],
)
def test_wrong_heights_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
