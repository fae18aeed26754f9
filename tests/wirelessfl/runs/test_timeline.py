"""Timelines of tasks: the end of the run, and how many of the clients figures show."""

import pytest

from tests.drawn import recorded
from wirelessfl import Config
from wirelessfl.engine.tasks.handler import Span
from wirelessfl.runs.timeline import ROWS, Timeline, timeline


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


@pytest.mark.parametrize("schedule", ["buffered", "simultaneous"])
def test_a_timeline_ends_with_its_run(schedule):
    flags = {"clients": 4, "hidden": (4,), "schedule": schedule, "step_seconds": 0.1}
    flags |= {"dataset": "digits", "local_steps": 1, "rounds": 9}
    limited = timeline(Config.from_flags("fedavg", **flags, max_seconds=0.25), 3.0)
    assert limited == timeline(Config.from_flags("fedavg", **flags), 0.25)
    assert max(span.end for span in limited.spans) <= limited.seconds == 0.25
    whole = timeline(Config.from_flags("fedavg", **flags), 99.0)
    assert whole.seconds == whole.merges[-1].seconds < 99.0
