"""Figures of timelines: how many of the clients they show."""

import pytest

from tests.drawn import recorded
from wirelessfl.engine.tasks.handler import Span
from wirelessfl.runs.timeline import ROWS, Timeline


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("busy", "clients", "label"),
    [
        (3, 3, "3 clients"),
        (3, 5, "3 of 5 clients (others idle)"),
        (ROWS + 2, ROWS + 2, f"{ROWS} of {ROWS + 2} clients"),
        (ROWS + 2, 2 * ROWS, f"{ROWS} of {2 * ROWS} clients"),
    ],
)
def test_the_axis_tells_how_many_clients_are_shown(busy, clients, label, tmp_path):
    spans = [Span(0, client, 0.0, 1.0, "done") for client in range(busy)]
    with recorded(laid_out=False) as figures:
        Timeline(["digits"], clients, 2.0, spans, []).draw(tmp_path / "timeline.png")
    (panel,) = figures["timeline"].axes
    assert panel.get_ylabel() == label
    assert len(panel.collections[0].get_paths()) == min(busy, ROWS)
