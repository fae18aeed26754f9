"""The plot of a split shows the split's counts."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from channels.streams import Stream
from wirelessfl.base.errors import DataError
from wirelessfl.data import draw_split, split
from wirelessfl.data.picture import label_counts

LABELS = np.random.default_rng(0).integers(0, 10, 3000)


def parts_of(clients):
    return split(LABELS, clients, kind="dirichlet", cells=3, stream=Stream(0, ("picture",)))


def test_counts_equal_those_of_a_plain_loop():
    parts = parts_of(7)
    counts = label_counts(parts, LABELS, classes=12)
    assert counts.shape == (12, 7)
    for client, part in enumerate(parts):
        for label in range(12):
            assert counts[label, client] == sum(LABELS[index] == label for index in part)


@pytest.mark.parametrize("clients", [10, 200])
def test_the_figure_shows_the_counts(clients):
    parts = parts_of(clients)
    figure = draw_split(parts, LABELS, cells=3, title="a split")
    assert isinstance(figure, Figure)
    matrix, sizes = figure.axes[:2]
    (image,) = matrix.images
    lengths = [len(part) for part in parts]
    np.testing.assert_allclose(
        image.get_array().filled(0).T, label_counts(parts, LABELS) / np.maximum(lengths, 1)
    )
    assert [bar.get_width() for bar in sizes.patches] == lengths
    blocks = np.array_split(np.arange(clients), 3)
    expected = [block[0] - 0.5 for block in blocks[1:]]
    assert [line.get_ydata()[0] for line in matrix.lines] == expected
    assert [text.get_text() for text in sizes.texts] == ["cell 0", "cell 1", "cell 2"]


def test_boundaries_follow_uneven_cells():
    cell_of = np.repeat([0, 1, 2], [1, 6, 3])
    matrix, sizes = draw_split(parts_of(10), LABELS, cell_of=cell_of).axes[:2]
    assert [line.get_ydata()[0] for line in matrix.lines] == [0.5, 6.5]
    assert [text.get_position()[1] for text in sizes.texts] == [0.0, 3.5, 8.0]


def test_absent_labels_are_white_and_single_samples_are_not():
    figure = draw_split([[0], [*range(1000)]], [0, *[1] * 999])
    (image,) = figure.axes[0].images
    colours = image.to_rgba(image.get_array())
    assert colours[0, 1, 3] == 0
    assert colours[1, 0, 3] == colours[0, 0, 3] == 1
    assert colours[1, 0, 2] < 0.9
    assert figure.axes[0].lines[:] == []  # one cell has no boundaries


def test_the_number_of_labels_may_be_any_integer():
    """Also one of NumPy, and clients may have no samples."""
    (image,) = draw_split([[0, 1], []], [0, 1], classes=np.int64(3)).axes[0].images
    assert image.get_array().filled(0).tolist() == [[0.5, 0.5, 0], [0, 0, 0]]


def test_the_axis_shows_the_names_of_labels():
    names = [f"class {label}" for label in range(11)]
    figure = draw_split(parts_of(10), LABELS, classes=names)
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == names


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_the_figure_is_saved(suffix, magic, tmp_path):
    draw_split(parts_of(12), LABELS, tmp_path / f"split{suffix}", cells=3)
    assert (tmp_path / f"split{suffix}").read_bytes().startswith(magic)


def test_invalid_arguments_are_errors(tmp_path):
    with pytest.raises(DataError, match=r"\.png, \.pdf"):
        draw_split(parts_of(4), LABELS, tmp_path / "split.txt")
    with pytest.raises(DataError, match="cells is 5 with 4 clients"):
        draw_split(parts_of(4), LABELS, cells=5)
    for wrong in (0.5, math.nan):
        with pytest.raises(DataError, match=r"client_samples\[1\] is float64 .*indices of samples"):
            draw_split([[0], [wrong, 1]], LABELS)
    with pytest.raises(DataError, match="labels contains 9, but classes is 9"):
        draw_split(parts_of(4), LABELS, classes=9)
    with pytest.raises(DataError, match="cell_of has 2 entries for 4 clients"):
        draw_split(parts_of(4), LABELS, cell_of=[0, 1])
    with pytest.raises(DataError, match=r"cells is 2\.0: give an integer"):
        draw_split(parts_of(4), LABELS, cells=2.0)
    with pytest.raises(DataError, match=r"labels\[1\] is -2; give labels >= 0"):
        draw_split([[0, 1]], [0, -2])
    for index in (3, -1):
        with pytest.raises(DataError, match=rf"\[1\] contains {index}, but labels has 3 entries"):
            label_counts([[0, 1], [2, index]], [0, 1, 2])
    with pytest.raises(DataError, match="labels is float64"):
        label_counts([[0]], [0.5])
