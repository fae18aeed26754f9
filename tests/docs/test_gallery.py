"""The examples of the gallery: short scripts of public names that draw one figure each."""

import ast
import re
import runpy

import numpy as np
import pytest

import channels as ch
from tests.docs.pages import ROOT
from tests.test_docs import private_paths

GALLERY = ROOT / "docs" / "gallery"
EXAMPLES = sorted(GALLERY.rglob("plot_*.py"), key=lambda path: path.stem)
QUICK = {"snr_map", "rates", "bands_timeline", "energy_deadline", "mask_sizes", "own_algorithm"}
"""Examples that take less than a second, and one that trains. The others take 3 to 7 s each."""
cases = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem[5:])


def marked(example):
    name = example.stem[5:]
    return pytest.param(example, marks=[] if name in QUICK else [pytest.mark.thorough], id=name)


@cases
def test_examples_are_short_and_public(example):
    text = example.read_text(encoding="utf-8")
    assert 15 <= len(text.splitlines()) <= (99 if example.parent.name == "ports" else 60)
    title, line, empty, *question = ast.get_docstring(ast.parse(text)).splitlines()
    assert line == "=" * len(title)
    assert not empty
    assert "?" in " ".join(question)
    assert private_paths(text) == set()
    assert not re.search(r"\bAgg\b|savefig|save_figure|matplotlib\.use|jobs=|workers=", text)
    assert text.endswith("plt.show()\n")


def test_every_example_has_a_place():
    """The order of the gallery names each example once."""
    tree = ast.parse((GALLERY.parent / "gallery_pages.py").read_text(encoding="utf-8"))
    order = ast.literal_eval(next(n.value for n in tree.body if isinstance(n, ast.Assign)))
    assert sorted(order) == [example.stem[5:] for example in EXAMPLES]
    assert len(order) >= 16


def last(drawn, field):
    """The last value of each curve, the mean over its runs."""
    return [np.mean([rows[-1][field] for rows in runs]) for runs in drawn["runs"].values()]


def at(rows, seconds):
    """The accuracy that a run has after some seconds."""
    return max(
        (row["sim_seconds"], row["accuracy"]) for row in rows if row["sim_seconds"] <= seconds
    )[1]


def of_timeline(drawn):
    """Optimal bands end sooner, and sending costs more."""
    equal, best = (
        access.serve(drawn["load"], drawn["draw"]) for access in drawn["accesses"].values()
    )
    return best.seconds.max() < equal.seconds.max() and best.joules.sum() > equal.joules.sum()


def of_energy(drawn):
    """In the time of equal bands, the least energy is about a tenth of theirs."""
    equal = ch.EqualBands().serve(drawn["load"], drawn["draw"])
    least = np.interp(equal.seconds.max(), drawn["deadlines"], drawn["joules"])
    return 0.05 < least / equal.joules.sum() < 0.15


def of_sessions(drawn):
    """From the fourth session on, the proposed start keeps what the latest model has forgotten."""
    starts = {
        name: [row["accuracy"] for row in runs[0] if row["session_round"] == 0][3:]
        for name, runs in drawn["runs"].items()
    }
    return min(starts["proposed"]) > max(starts["previous"]) + 0.3


def of_design(drawn):
    """The runs of the design end within the predicted interval."""
    dots = [
        float(line.get_xdata()[0]) for line in drawn["axes"].get_lines() if line.get_marker() == "o"
    ]
    low, high = drawn["predicted"].low, drawn["predicted"].high
    return len(dots) == 6 and all(low <= x <= high for x in dots[3:]) and min(dots[:3]) > high


def of_selections(drawn):
    """Means over the seeds: the learning ones take less than 0.6 of the time of random clients."""
    seconds = {
        name: [
            next((row["sim_seconds"] for row in rows if row["accuracy"] >= 0.9), np.inf)
            for rows in seeds
        ]
        for name, seeds in drawn["runs"].items()
    }
    random = np.mean(seconds["random"])
    fast = [np.mean(seconds[name]) < 0.6 * random for name in ("ucb", "utility")]
    return all(fast) and 0.85 < last(drawn, "accuracy")[1] < 0.92


def of_batteries(drawn):
    """Those that wait are later and nearly as accurate; those that drop out end the run."""
    full, waits, drops = drawn["runs"].values()
    later = waits[-1]["sim_seconds"] > 1.5 * full[-1]["sim_seconds"]
    best = [max(row["accuracy"] for row in rows) for rows in (full, waits, drops)]
    return later and len(waits) == 81 and len(drops) < 30 and best[1] > 0.94 > 0.86 > best[2]


def of_uploads(drawn):
    """Two bits take less than a quarter of the seconds; top-k learns slowly without feedback."""
    accuracies, seconds = last(drawn, "accuracy"), last(drawn, "sim_seconds")
    return (
        accuracies[1] > accuracies[0] - 0.02
        and seconds[1] < seconds[0] / 4
        and accuracies[3] > accuracies[2] + 0.02
    )


def of_delay_spread(drawn):
    """The mean rate stays within 2 %, its 5 % quantile triples, and a round takes half the time."""
    means = [rate.mean() for rate in drawn["rates"]]
    low = [np.quantile(rate, 0.05) for rate in drawn["rates"]]
    rounds = [np.median(seconds) for seconds in drawn["seconds"]]
    same = max(means) < 1.02 * min(means)
    return same and low[-1] > 3 * low[0] and rounds[-1] < 0.5 * rounds[0]


def of_aerial(drawn):
    """The least loss is at the published elevations; high buildings want a low edge server."""
    heights = drawn["heights"]
    for surroundings, degrees in drawn["ANGLES"].items():
        loss = [drawn["edge_db"](height, surroundings) for height in heights]
        published = drawn["RADIUS"] * np.tan(np.radians(degrees))
        if abs(np.log(heights[np.argmin(loss)] / published)) > np.log(heights[1] / heights[0]):
            return False
    (*_, tallest) = drawn["right"].get_lines()
    return np.argmin(tallest.get_ydata()) == 0


def first(rows, accuracy):
    """The seconds after which a run has reached an accuracy; infinite if it has not."""
    return next((row["sim_seconds"] for row in rows if row["accuracy"] >= accuracy), np.inf)


def of_hierfl(drawn):
    """An average every 15 steps reaches 85 % first; every 60 steps, not within this time."""
    seldom, medium, often = (first(*runs, 0.85) for runs in drawn["runs"].values())
    return medium < often < seldom


def of_hier_qsgd(drawn):
    """Two bits end as accurate as 32, in 40 to 60 % of the time."""
    accuracies, seconds = last(drawn, "accuracy"), last(drawn, "sim_seconds")
    return accuracies[2] > accuracies[0] - 0.02 and 0.4 < seconds[2] / seconds[0] < 0.6


def of_votes(drawn):
    """Votes reach 90 % in less than a third of the time; with six labels per client they do not."""
    votes, whole, labels, _ = (first(*runs, 0.9) for runs in drawn["runs"].values())
    return votes < whole / 3 and labels == np.inf and 0.6 < last(drawn, "accuracy")[2] < 0.8


def of_oort(drawn):
    """Means over the seeds."""
    random, utility = (
        np.mean([first(rows, 0.9) for rows in seeds]) for seeds in drawn["runs"].values()
    )
    return utility < 0.7 * random < np.inf


def of_handover(drawn):
    """The walker goes from cell 0 to 2, its gain never falls, and rounds end sooner."""
    kept, gained = (np.array(values) for values in drawn["gains"])
    slow, fast = (seconds.mean() for seconds in drawn["seconds"])
    ends = drawn["cells"][1][[0, 30, -1]].tolist() == [0, 0, 2] and not drawn["cells"][0].any()
    return ends and (gained >= kept - 1e-9).all() and slow > 5 * fast


CLAIMS = {
    "handover": of_handover,
    "aerial_cell": of_aerial,
    "delay_spread": of_delay_spread,
    "bands_timeline": of_timeline,
    "energy_deadline": of_energy,
    "devices": lambda d: np.isclose(d["seconds"], d["cost"]("raspberry-pi-4")[0]),
    "mask_sizes": lambda d: [*np.argsort([c[-1] for c in d["seconds"].values()])] == [2, 1, 0],
    "beamforming_bound": lambda d: (
        np.abs([*d["gap_db"]["default"].values()]).max() < 1e-3
        and np.mean(d["gap_db"]["relaxation's bound"][13]) > 0.1
    ),
    "aircomp_error": lambda d: np.allclose(d["simulated"], d["predicted"], rtol=0.1),
    "hist": lambda d: 3.5 < last(d, "sim_seconds")[1] / last(d, "sim_seconds")[0] < 4.5,
    "asynchronous": lambda d: (
        at(*d["runs"]["buffer of 2 cells"], 0.3) > at(*d["runs"]["rounds"], 0.3)
    ),
    "ra_fed_widths": lambda d: (
        at(*d["runs"]["fastest widths"], 2) > at(*d["runs"]["full models"], 2) + 0.05
    ),
    "sessions": of_sessions,
    "design_check": of_design,
    "own_algorithm": lambda d: last(d, "accuracy")[0] > last(d, "accuracy")[1] + 0.03,
    "payloads": of_uploads,
    "learning_selection": of_selections,
    "batteries": of_batteries,
    "moving_clients": lambda d: (
        d["prices"][0].seconds.mean() > 1.05 * d["prices"][1].seconds.mean()
    ),
    "rates": lambda d: (
        d["at"].max() == ch.spectral_efficiency(10**2.3, "mcs") and d["received_db"].max() > 45
    ),
    "hierfl": of_hierfl,
    "hier_qsgd": of_hier_qsgd,
    "majority_vote": of_votes,
    "joint_learning": lambda d: last(d, "accuracy")[0] > last(d, "accuracy")[1] + 0.03,
    "oort": of_oort,
    "snr_map": lambda d: np.nanmax(d["snr_db"]) > 50 and d["network"].mean_snr_db.min() < 0,
}
"""What the texts and figures of examples state, of the variables of a script that has run."""


@pytest.mark.parametrize("example", [marked(example) for example in EXAMPLES])
def test_examples_draw_one_figure_and_leave_no_file(example, tmp_path, monkeypatch):
    """Its axes have labels, it needs no data of a folder, and what its text states holds."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WIRELESSFL_DATA", raising=False)
    monkeypatch.setattr(pyplot, "show", lambda: None)
    pyplot.switch_backend("agg")
    with pyplot.rc_context():
        drawn = runpy.run_path(str(example), run_name="__main__")
        try:
            [number] = pyplot.get_fignums()
            figure = pyplot.figure(number)
            assert all(panel.has_data() for panel in figure.axes)
            assert any(panel.get_xlabel() for panel in figure.axes)
            assert figure.get_supylabel() or all(panel.get_ylabel() for panel in figure.axes)
            assert CLAIMS[example.stem[5:]](drawn)
        finally:
            pyplot.close("all")
    assert [*tmp_path.iterdir()] == []
