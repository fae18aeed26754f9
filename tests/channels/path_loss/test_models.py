"""Path loss models against the formulas of 3GPP, written out, and published values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import PATH_LOSSES, InH, LogDistance, Rma, Tr36814, Uma, Umi, path_loss_db

log = math.log10
DISTANCES = st.floats(10, 5000)
CARRIERS = st.floats(0.5, 100)


@pytest.mark.parametrize(
    ("sight", "metres", "published"),
    [(False, 100, 107.943), (False, 1000, 143.189), (True, 100, 88.412), (True, 1000, 119.311)],
)
def test_published_values_of_umi_at_5_ghz(sight, metres, published):
    """Horizontal distances, with antennas at 10 m and 1.5 m."""
    assert Umi(5.0).loss_db(metres, sight) == pytest.approx(published, abs=5e-4)


def umi(d2, sight, f, bs, ut):
    d3 = math.sqrt(d2**2 + (bs - ut) ** 2)
    knee = 4 * (bs - 1) * (ut - 1) * f * 1e9 / 3e8
    if d2 <= knee:
        loss = 32.4 + 21 * log(d3) + 20 * log(f)
    else:
        loss = 32.4 + 40 * log(d3) + 20 * log(f) - 9.5 * log(knee**2 + (bs - ut) ** 2)
    if sight:
        return loss
    return max(loss, 35.3 * log(d3) + 22.4 + 21.3 * log(f) - 0.3 * (ut - 1.5))


def uma(d2, sight, f, bs, ut):
    d3 = math.sqrt(d2**2 + (bs - ut) ** 2)
    knee = 4 * (bs - 1) * (ut - 1) * f * 1e9 / 3e8
    if d2 <= knee:
        loss = 28 + 22 * log(d3) + 20 * log(f)
    else:
        loss = 28 + 40 * log(d3) + 20 * log(f) - 9 * log(knee**2 + (bs - ut) ** 2)
    if sight:
        return loss
    return max(loss, 13.54 + 39.08 * log(d3) + 20 * log(f) - 0.6 * (ut - 1.5))


def rma(d2, sight, f, bs, ut, h=5.0, w=20.0):
    def first(d):
        roofs = min(0.03 * h**1.72, 10) * log(d) - min(0.044 * h**1.72, 14.77)
        return 20 * log(40 * math.pi * d * f / 3) + roofs + 0.002 * log(h) * d

    d3 = math.sqrt(d2**2 + (bs - ut) ** 2)
    knee = 2 * math.pi * bs * ut * f * 1e9 / 3e8
    loss = first(d3) if d2 <= knee else first(knee) + 40 * log(d3 / knee)
    if sight:
        return loss
    blocked = 161.04 - 7.1 * log(w) + 7.5 * log(h)
    blocked -= (24.37 - 3.7 * (h / bs) ** 2) * log(bs)
    blocked += (43.42 - 3.1 * log(bs)) * (log(d3) - 3) + 20 * log(f)
    return max(loss, blocked - (3.2 * log(11.75 * ut) ** 2 - 4.97))


def inh(d2, sight, f, bs, ut):
    d3 = math.sqrt(d2**2 + (bs - ut) ** 2)
    loss = 32.4 + 17.3 * log(d3) + 20 * log(f)
    return loss if sight else max(loss, 38.3 * log(d3) + 17.3 + 24.9 * log(f))


@given(DISTANCES, st.booleans(), CARRIERS, st.floats(5, 20), st.floats(1.5, 22.5))
def test_umi(d, sight, f, bs, ut):
    assert Umi(f, bs, ut).loss_db(d, sight) == pytest.approx(umi(d, sight, f, bs, ut))


@given(DISTANCES, st.booleans(), CARRIERS, st.floats(20, 50), st.floats(1.5, 13))
def test_uma(d, sight, f, bs, ut):
    assert Uma(f, bs, ut).loss_db(d, sight) == pytest.approx(uma(d, sight, f, bs, ut))


@given(
    DISTANCES,
    st.booleans(),
    st.floats(0.5, 30),
    st.floats(10, 150),
    st.floats(1, 10),
    st.floats(5, 50),
    st.floats(5, 50),
)
def test_rma(d, sight, f, bs, ut, h, w):
    model = Rma(f, bs, ut, h, w)
    assert model.loss_db(d, sight) == pytest.approx(rma(d, sight, f, bs, ut, h, w))


@given(st.floats(1, 149), st.booleans(), CARRIERS, st.floats(1, 10), st.floats(0.5, 10))
def test_inh(d, sight, f, bs, ut):
    assert InH(f, bs, ut).loss_db(d, sight) == pytest.approx(inh(d, sight, f, bs, ut))


def test_losses_are_continuous_at_the_breakpoint():
    """A small error, 0.1 dB, is in the table itself: it mixes 2D and 3D distances."""
    for model, step in ((Umi(3.5), 0.11), (Uma(3.5), 0.11), (Rma(1.0), 0.11)):
        knee = model.breakpoint_m
        below, above = model.loss_db([knee * (1 - 1e-9), knee * (1 + 1e-9)], True)
        assert abs(above - below) < step


@pytest.mark.parametrize(
    ("model", "formula", "heights"),
    [
        (Umi(3.5, 10, 1.5), umi, (3.5, 10, 1.5)),
        (Uma(3.5), uma, (3.5, 25, 1.5)),
        (Rma(1.0), rma, (1.0, 35, 1.5)),
    ],
    ids=["umi", "uma", "rma"],
)
def test_breakpoints_are_2d_distances(model, formula, heights):
    """Just before them, 3D distances are longer already."""
    knee, height = model.breakpoint_m, heights[1] - heights[2]
    flat = math.sqrt(knee**2 - height**2 / 2)
    assert flat < knee < math.hypot(flat, height)
    for distance in (flat, knee, knee * (1 + 1e-12)):
        found = model.loss_db(distance, True)
        assert found == pytest.approx(formula(distance, True, *heights), rel=1e-12)
    if isinstance(model, Rma):
        assert model.shadowing_std_db([flat, knee, knee + 1e-9], True).tolist() == [4, 4, 6]


def test_probabilities_of_a_line_of_sight():
    """Table 7.4.2-1, written out."""
    for d in (18.0, 60.0, 1000.0):
        wanted = 18 / d + math.exp(-d / 36) * (1 - 18 / d)
        assert Umi().los_probability(d) == pytest.approx(wanted)
        wanted = 18 / d + math.exp(-d / 63) * (1 - 18 / d)
        assert Uma().los_probability(d) == pytest.approx(wanted)
        assert Rma().los_probability(d) == pytest.approx(math.exp(-(d - 10) / 1000))
    assert [m.los_probability(10) for m in (Umi(), Uma(), Rma())] == [1, 1, 1]
    wanted = [1, math.exp(-3.8 / 4.7), 0.32, 0.32 * math.exp(-50 / 32.6)]
    assert InH().los_probability([1.1, 5, 6.5, 56.5]) == pytest.approx(wanted)
    assert [m.los_probability(99) for m in (Tr36814(), LogDistance())] == [0, 0]


def test_shadowing():
    """Table 7.4.1-1."""
    for model, wanted in ((Umi(), [4, 7.82]), (Uma(), [4, 6]), (InH(), [3, 8.03])):
        assert model.shadowing_std_db(50, [True, False]).tolist() == wanted
    knee = Rma(1.0).breakpoint_m
    stds = Rma(1.0).shadowing_std_db([knee - 1, knee + 1, knee - 1], [True, True, False])
    assert stds.tolist() == [4, 6, 8]
    assert Tr36814().shadowing_std_db([99, 100], False).tolist() == [8, 8]
    assert LogDistance(shadowing_db=3).shadowing_std_db([99, 100], False).tolist() == [3, 3]


def test_models_without_lines_of_sight():
    assert Tr36814().loss_db([100, 1000], [True, False]) == pytest.approx([128.1 - 37.6, 128.1])
    model = LogDistance(2.0, 40.0, 10.0)
    wanted = path_loss_db([50, 500], exponent=2.0, reference_db=40.0, reference_m=10.0)
    assert model.loss_db([50, 500], False).tolist() == wanted.tolist()
    assert model.loss_db(100, False) == pytest.approx(60)


def test_arrays_broadcast():
    model = Umi()
    many = model.loss_db([[20.0], [200.0]], [True, False])
    assert many.shape == (2, 2)
    assert many[1, 0] == model.loss_db(200.0, True)
    with pytest.raises(ValueError, match=r"the shapes do not fit: distance_m \(2,\)"):
        model.loss_db([20, 30], [True, False, True])


@pytest.mark.parametrize("name", PATH_LOSSES)
def test_kilometres_are_refused(name):
    model = PATH_LOSSES[name]()
    for call in (
        model.los_probability,
        lambda d: model.loss_db(d, True),
        lambda d: model.shadowing_std_db(d, True),
    ):
        with pytest.raises(ValueError, match=r"^distance_m contains 0.3: .* A kilometre is 1000"):
            call([100.0, 0.3])
        for wrong in ("x", [np.nan], [1e9 if model.range_m[1] < np.inf else np.inf]):
            with pytest.raises((TypeError, ValueError), match=r"^distance_m"):
                call(wrong)


def test_rounding_of_positions_is_no_error():
    model = Umi()
    assert model.loss_db(10 * (1 - 1e-12), True) == model.loss_db(10, True)
    model.loss_db(5000 * (1 + 1e-12), True)
    with pytest.raises(ValueError, match="Umi needs metres from 10 to 5000"):
        model.loss_db(5001, True)


def test_indoor_links_end_at_150_metres_in_space():
    """sqrt(150^2 - 2^2) = 149.987 m on the floor."""
    InH().loss_db(149.98, True)
    with pytest.raises(ValueError, match=r"InH needs metres from 1 to 149\.987"):
        InH().loss_db(149.99, True)


def test_rural_lines_of_sight_are_longer():
    model = Rma()
    assert model.loss_db([9000.0, 4000.0], [True, False]).shape == (2,)
    assert model.los_probability(9000.0) == pytest.approx(math.exp(-8.99))
    with pytest.raises(ValueError, match="distance_m contains 9000: Rma needs metres from 10 to 5"):
        model.loss_db([9000.0, 4000.0], False)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (Umi, {"carrier_ghz": 3.5e9}, "carrier_ghz is 3.5e.09: give 0.5 to 100 GHz.*write 3.5"),
        (Uma, {"carrier_ghz": 3500}, "give 0.5 to 100 GHz. For 3500 megahertz write 3.5"),
        (Uma, {"client_height_m": 20}, "client_height_m is 20: give 1.5 to 13 metres"),
    ],
)
def test_settings_out_of_range_name_their_unit(kind, settings, message):
    with pytest.raises(ValueError, match=message):
        kind(**settings)


def test_a_line_of_sight_is_boolean():
    with pytest.raises(ValueError, match=r"^line_of_sight is 0.3: give True or False"):
        Umi().loss_db(100.0, 0.3)
