"""Methods have colours of their own, which all readers can tell apart."""

import itertools

import numpy as np
import pytest

from wirelessfl.base.figures.curves import colour_of, line_look, looks
from wirelessfl.base.figures.style import COLOURS, LEAST_CONTRAST, contrast, shade
from wirelessfl.results.selection import NAMES

SEEN = {
    "normal": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
"""Linear colours as colour-blind readers see them (Machado et al. 2009, severity 1)."""
TO_XYZ = np.array([[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8727]])


def lab(colour, seen):
    """The colour in CIELAB, in which distances are perceived ones."""
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(np.array(seen) @ linear, 0, 1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("seen", SEEN)
def test_colours_are_distinct_and_dark_enough(seen):
    assert min(map(contrast, COLOURS)) >= LEAST_CONTRAST
    each = [lab(colour, SEEN[seen]) for colour in COLOURS]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(each, 2)) > 25


def test_contrasts_are_those_of_the_definition():
    assert contrast("#000000") == pytest.approx(21)
    assert contrast("#FFFFFF") == pytest.approx(1)
    assert contrast("#767676") == pytest.approx(4.54, abs=0.01)


def test_all_algorithms_have_colours_and_compared_ones_differ():
    for key, name in NAMES.items():
        assert colour_of(key) == colour_of(name) == colour_of(f"{name}, N = 4")
    for together in (
        ("hist", "hfedavg", "fedavg"),
        ("fedavg", "fedavg-small", "heterofl", "fedrolex", "ra-fed", "ram-fed"),
        ("fedavg-m", "scaffold-m", "fedadam", "fedams", "local-adam", "fa-nt", "fadamgc"),
        ("fedast", "fedast-nobuffer", "sync-st", "sync-bayes-st", "sync-ucb-st", "fedbuff"),
        ("fedavg", "fedprox", "scaffold", "fedacg", "moon"),
        ("proposed", "continuous", "previous", "average", "random pilot", "fresh"),
        ("tdma", "ofdma", "aircomp"),
    ):
        assert len({colour_of(one) for one in together}) == len(together)
    with pytest.raises(ValueError, match="method is 'mine', which has no colour: choose aircomp"):
        colour_of("mine")


def test_variants_of_a_method_are_shades_and_dashes_of_its_colour():
    labels = ["HFedAvg, N = 2", "HFedAvg, N = 4", "HIST, N = 2", "HIST, N = 4", "mine", "yours"]
    found = looks(labels)
    assert found["HIST, N = 2"]["color"] == colour_of("hist")
    assert found["HFedAvg, N = 2"]["linestyle"] == found["HIST, N = 2"]["linestyle"]
    assert found["HFedAvg, N = 4"]["linestyle"] == found["HIST, N = 4"]["linestyle"]
    assert found["HIST, N = 2"]["linestyle"] != found["HIST, N = 4"]["linestyle"]
    assert len({look["color"] for look in found.values()}) == len(labels)
    alone = looks(["HIST", "FedAvg"])
    assert alone["HIST"]["linestyle"] != alone["FedAvg"]["linestyle"]
    assert line_look(1, "HIST, AirComp")["color"] == line_look(0, "HIST")["color"]
    assert line_look(1, "mine")["color"] == line_look(1)["color"] != line_look(0)["color"]


@pytest.mark.parametrize("colour", COLOURS)
def test_shades_are_visible(colour):
    shades = [shade(colour, i, 3) for i in range(3)]
    assert shades[0] == colour
    assert len(set(shades)) == 3
    assert min(map(contrast, shades)) >= LEAST_CONTRAST
