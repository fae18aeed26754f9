"""The plot of masks agrees with ``deal_masks``."""

import numpy as np
import pytest

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels import Dealing, Neurons, coverage, deal_masks, draw_masks


def test_panels_show_masks_and_coverage(tmp_path):
    """Panels show the masks and coverage of ``deal_masks``; crosses mark uncovered neurons."""
    counts, width, path = [6, 3, 3], 12, tmp_path / "masks.png"
    figure = draw_masks(counts, width, path, kinds=("ordered", "covered"), rounds=2, seed=4)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [panel.get_ylabel() for panel in figure.axes[:2]] == ["round 1\nclients", "Γ"]
    assert [panel.get_xlabel() for panel in figure.axes[1:4:2]] == ["", "neurons"]
    assert figure.get_supxlabel().count("\n") == 1, "it fits into the figure"
    panels = iter(figure.axes)
    layers = [Neurons("hidden", width, ())]
    for kind in ("ordered", "covered"):
        for number in range(2):
            own = Dealing(number, np.arange(3), Stream(4).child("round", number), Stream(4))
            chosen = deal_masks(kind, layers, np.array(counts)[:, None], own)
            times = coverage(chosen, layers)[0]
            held, below = next(panels), next(panels)
            rows = [np.flatnonzero(row) for row in held.images[0].get_array()]
            assert [row.tolist() for row in rows] == [mine[0].tolist() for mine in chosen]
            assert below.images[0].get_array().tolist() == [times.tolist()]
            assert below.lines[0].get_xdata().tolist() == np.flatnonzero(times == 0).tolist()


def test_an_unknown_file_suffix_is_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"path is .*masks.txt.*: give a file name that ends in .png"
    ):
        draw_masks([2], 4, tmp_path / "masks.txt")
    assert not list(tmp_path.iterdir())
