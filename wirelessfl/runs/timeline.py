"""Timelines of tasks: which client trains which task, and when updates are merged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from channels.arguments import is_number
from channels.notes import Notes
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.figures.curves import COLOURS, new_figure, save_figure, style
from wirelessfl.base.figures.marks import Span as Bar
from wirelessfl.base.figures.marks import draw_spans
from wirelessfl.base.torch_state import own_modes
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.engine.events import Report
from wirelessfl.engine.tasks.handler import Merged, Records, Span, TaskHandler
from wirelessfl.runs.build.building import build_resolved
from wirelessfl.runs.build.configured import configured
from wirelessfl.runs.build.given import NOTHING
from wirelessfl.runs.build.planners import Untrained
from wirelessfl.runs.pricing.price import follow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_SPANS = 50_000
"""Pieces of work that a figure can show; drawing them takes minutes."""
ROWS = 40
"""Maximum number of clients in a figure."""
SECONDS = 20.0
"""Simulated seconds that the command draws by default."""
LOST = "dropped or discarded"
WHOLE = ("done", "under way")
"""Work drawn in solid colour; lost, cancelled or stale work is hatched."""


@dataclass(frozen=True)
class Timeline:
    """Work of clients and merges of models over time.

    Args:
        tasks: names of the tasks.
        clients: number of clients of the run, including those without work.
        seconds: simulated duration, at most that of the run.
        spans: work of clients, in order of completion; work in progress comes last.
        merges: merges of all tasks, in order.
    """

    tasks: list[str]
    clients: int
    seconds: float
    spans: list[Span]
    merges: list[Merged]

    def summary(self) -> list[dict[str, Any]]:
        """Per task, numbers of spans by outcome, number of merges, and their staleness."""
        lines = []
        stale = ("too stale",) if any(span.how == "too stale" for span in self.spans) else ()
        kinds = ("done", "lost", "cancelled", *stale, "under way")
        for task, name in enumerate(self.tasks):
            how = Counter(span.how for span in self.spans if span.task == task)
            merges = [merge for merge in self.merges if merge.task == task]
            ages = [number for merge in merges for number in merge.staleness]
            lines.append(
                {
                    "task": name,
                    **{kind: how[kind] for kind in kinds},
                    "merges": len(merges),
                    "staleness_mean": sum(ages) / len(ages) if ages else 0.0,
                    "staleness_max": max(ages, default=0),
                }
            )
        return lines

    def draw(self, path: Path) -> list[Path]:
        """Draw the work of each client on one line in the tasks' colours, and the merges on top.

        Args:
            path: path of the figure; a .png and a .pdf file are written.

        Returns:
            The two files.
        """
        figure, (panel,) = new_figure(height=3.4)
        figure.set_figwidth(style().wide)
        self._draw(panel)
        return save_figure(figure, path)

    def _draw(self, panel: Axes) -> None:
        clients = list(dict.fromkeys(s.client for s in sorted(self.spans, key=lambda s: s.begin)))
        line_of = {client: line for line, client in enumerate(clients[:ROWS])}
        tops = len(line_of)
        edge = {"edgecolor": "white", "linewidth": 0.4}
        looks: dict[str, dict[str, Any]] = {}
        for task, name in enumerate(self.tasks):
            looks[name] = {"facecolor": COLOURS[task % len(COLOURS)], **edge}
            looks[f"{name}, {LOST}"] = {**looks[name], "alpha": 0.3, "hatch": "////"}
        bars: dict[str, list[Bar]] = {name: [] for name in looks}
        for span in self.spans:
            if span.client in line_of:
                lost = "" if span.how in WHOLE else f", {LOST}"
                bar = (span.begin, span.end - span.begin, line_of[span.client])
                bars[self.tasks[span.task] + lost].append(bar)
        legend = {name: {"color": looks[name]["facecolor"]} for name in self.tasks}
        if any(span.how not in WHOLE for span in self.spans):
            legend[LOST] = {"facecolor": "0.8", "hatch": "////", "edgecolor": "white"}
        shown = f"{tops} of {self.clients} clients" if tops < self.clients else f"{tops} clients"
        idle = " (others idle)" if tops == len(clients) < self.clients else ""
        draw_spans(panel, bars, looks, legend, clients=shown + idle)
        for task in range(len(self.tasks)):
            colour, height = COLOURS[task % len(COLOURS)], tops + 1 + task
            at = [merge.seconds for merge in self.merges if merge.task == task]
            panel.plot(at, [height] * len(at), "|", color=colour, markersize=7, clip_on=False)
            panel.text(
                -0.01,
                height,
                "merges ",
                fontsize=style().small,
                ha="right",
                va="center",
                transform=panel.get_yaxis_transform(),
            )
        panel.set_ylim(-0.7, tops + len(self.tasks) + 0.7)
        panel.set_xlim(0, self.seconds)
        panel.set_yticks([])
        panel.grid(visible=False, axis="y")


@own_modes
def timeline(config: Config, seconds: float) -> Timeline:
    """Simulate the first ``seconds`` of a run of tasks without training.

    Clock and random streams are the run's. Times equal the run's until the first decision that
    depends on a model: a task reaches its target, requests are reallocated dynamically, or clients
    are assigned by losses.

    Args:
        config: settings of the run.
        seconds: simulated seconds, > 0; those of the run if it ends before.

    Raises:
        ConfigError: the run has no requests to clients and no rounds of tasks, or ``seconds`` is
            not a finite number > 0.
        DataError: the size of an upload depends on data that must be read, but are missing.
    """
    config = configured(config)
    if not config.regime.of_tasks:
        raise ConfigError(
            f"this timeline shows requests to clients or rounds of tasks, but algorithm "
            f"{config.named('algorithm')!r} with schedule {config.named('schedule')!r} has "
            "neither: use the command `wirelessfl timeline`."
        )
    if not (is_number(seconds) and 0 < seconds < float("inf")):
        raise ConfigError(f"seconds is {shown(seconds)}: give a finite number > 0.")
    limit = config.training.max_seconds
    records = Records()
    setup = build_resolved(config, NOTHING, untrained=Untrained(records=records))
    Notes()(*setup.notes)

    def check(report: Report) -> None:
        if len(records.spans) > MOST_SPANS:
            raise ConfigError(
                f"seconds is {shown(seconds)}: in {setup.clock.now:.3g} s clients have more than "
                f"{MOST_SPANS} pieces of work, which a timeline does not show. Give fewer seconds."
            )

    follow(setup, check, seconds if limit is None else min(seconds, limit))
    assert isinstance(setup.handler, TaskHandler)
    end = setup.clock.now
    spans = [*records.spans, *setup.handler.under_way(end)]
    return Timeline(list(config.tasks), setup.network.clients, end, spans, records.merges)
