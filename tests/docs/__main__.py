"""Draw the calls of a round to docs/figures/round-calls.png: ``python -m tests.docs``."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from tests.docs.pages import ROOT

LANES = {
    "plan": ("who, where, how long", "#cdeadf"),
    "servers": ("servers", "#cfe3f5"),
    "clients": ("clients", "#fde0c8"),
    "air": ("the air", "#f3d9e8"),
}
"""Title and colour of each column."""


@dataclass(frozen=True)
class Call:
    """A method of a part.

    Args:
        lane: its column.
        kind: base class of the part.
        name: the method; "" for a function.
        note: what it returns or does.
    """

    lane: str
    kind: str
    name: str
    note: str


ROUND = (
    Call("plan", "Selection", "select", "who takes part"),
    Call("plan", "Fading", "draw", "channels of the round"),
    Call("plan", "Assigner", "client_submodels", "who trains which neurons"),
    Call("plan", "Access", "serve", "seconds, joules, who arrives"),
    Call("plan", "Failures", "probability", "uploads that fail"),
    Call("air", "Uplink", "receive", "starts a Reception"),
    Call("servers", "Algorithm", "outgoing", "what is sent to clients"),
    Call("clients", "Algorithm", "begin", "state of the optimiser"),
    Call("clients", "Loss", "values", "loss of each sample"),
    Call("clients", "Algorithm", "gradient", "corrected gradients"),
    Call("clients", "Algorithm", "direction", "moments"),
    Call("clients", "Algorithm", "keep", "client state"),
    Call("clients", "Algorithm", "send", "payloads"),
    Call("air", "Reception", "add", "payloads of some clients"),
    Call("air", "Reception", "finish", "noise, fading"),
    Call("air", "Reception", "result", "Received"),
    Call("servers", "Algorithm", "merge", "next state of the servers"),
    Call("servers", "HFedAvg", "combine", "next state of the cloud"),
    Call("servers", "Metric", "value", "fields of rows"),
    Call("servers", "Observer", "row", "watches, or ends the run"),
)
"""The calls of a synchronous round, in order."""
LOOPS = (
    ("values", "direction", 6.62, "each\nlocal step"),
    ("receive", "merge", 8.8, "each edge round"),
)
"""First and last call of what is repeated, and where its bracket is."""
RECORDS = {
    "probability": "Transmission",
    "outgoing": "Cohort",
    "send": "payloads",
    "result": "Received",
}
"""What passes from the last call of a column to the next one, by that call."""
WIDTH, TOP, ROW, BOX = 9.3, 0.62, 0.4, (2.0, 0.33)


def draw() -> Figure:
    """Draw one column per lane, and one row per call."""
    height = TOP + ROW * len(ROUND)
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(0, height)
    axes.set_axis_off()
    left = {lane: 0.1 + 2.18 * place for place, lane in enumerate(LANES)}
    for lane, (title, _) in LANES.items():
        x = left[lane] + BOX[0] / 2
        axes.text(x, height - 0.22, title, ha="center", va="center", fontsize=11, weight="bold")
    rows = {call.name: height - TOP - ROW * number for number, call in enumerate(ROUND)}
    for call, following in zip(ROUND, (*ROUND[1:], None), strict=True):
        x, y = left[call.lane], rows[call.name]
        _box(axes, call, x, y)
        if following is None:
            continue
        top = rows[following.name] + BOX[1] / 2
        target = left[following.lane] + BOX[0] / 2
        if following.lane == call.lane:
            corners = ([target, target], [y - BOX[1] / 2, top])
        else:
            side = x + BOX[0] if target > x else x
            corners = ([side, target, target], [y, y, top])
        axes.plot(*corners, color="0.35", lw=1.1)
        axes.plot([target], [top + 0.02], marker="v", color="0.35", ms=4)
        if call.name in RECORDS:
            _record(axes, RECORDS[call.name], (side + target) / 2, y + 0.07)
    for first, last, x, text in LOOPS:
        ends = rows[first] + 0.13, rows[last] - 0.13
        axes.plot([x - 0.1, x, x, x - 0.1], [ends[0], *ends, ends[1]], color="0.35", lw=1.2)
        turned = 0 if "\n" in text else 90
        axes.text(x + 0.08, sum(ends) / 2, text, va="center", fontsize=9, rotation=turned)
    return figure


def _record(axes: Axes, name: str, x: float, y: float) -> None:
    axes.text(x, y, name, ha="center", va="center", fontsize=8.5, style="italic")


def _box(axes: Axes, call: Call, x: float, y: float) -> None:
    wide, high = BOX
    shape = "round,pad=0,rounding_size=0.06"
    colour = LANES[call.lane][1]
    corner = (x, y - high / 2)
    axes.add_patch(FancyBboxPatch(corner, wide, high, shape, fc=colour, ec="0.6", lw=0.7))
    name = f"{call.kind}.{call.name}"
    axes.text(x + wide / 2, y + 0.075, name, ha="center", va="center", fontsize=7.5, weight="bold")
    axes.text(x + wide / 2, y - 0.08, call.note, ha="center", va="center", fontsize=7.5)


if __name__ == "__main__":
    path = ROOT / "docs" / "figures" / "round-calls.png"
    draw().savefig(path, dpi=160)
    print(f"drawn: {path.relative_to(ROOT)}")
