"""Decided in every round: prices in the stored files, and studies at scale smoke."""

import re
import statistics
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean

import pytest

import wirelessfl
from experiments import records
from experiments.blocks import DOCS
from experiments.decided import (
    conventions,
    crossover,
    energy,
    findings,
    masks,
    oma,
    selection,
    votes,
)
from experiments.decided.__main__ import PAPER
from experiments.decided.uplinks import AIR, BEST, EQUAL, OMA, OPTIMAL, READY, SLOTS, shown
from experiments.evidence import Evidence
from experiments.studies import SCALES
from tests.drawn import finished, legend, ticks, titles
from wirelessfl.config import Config
from wirelessfl.results.archive import StoredRun
from wirelessfl.runs.targets import cost_to


@pytest.fixture(scope="module")
def hist():
    return oma.evidence()


def test_every_configuration_can_be_read_at_every_scale():
    for study in (one for scale in SCALES for one in PAPER.studies(scale)):
        assert study.cases
        assert len({repr(case) for case in study.cases}) == len(study.cases)
        assert all(case.config(case.seeds[0]) for case in study.cases)


# HIST's Figures 6 and 7


def test_stored_seconds_are_those_of_the_stored_runs(hist):
    """If this fails after new rows: ``python -m experiments.decided oma --make`` prices them."""
    stored = {one.place: one for one in oma.load()}
    wanted = list(oma.wanted(hist))
    assert len(stored) == len(wanted)
    for point, _, _ in wanted:
        one = stored[point.place]
        assert one.rounds == point.rounds
        assert (one.seconds is None) == (point.rounds is None)
        assert one.uplink != AIR or one == point


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("uplink", "study", "snr"),
    [(OPTIMAL, "fig7c", None), (READY, "fig7b", -10.0), (SLOTS, "fig6", None)],
)
def test_a_stored_second_is_a_price(hist, uplink, study, snr):
    """Priced without the stored run: the configuration over the other uplink."""
    point, case, _ = next(
        one
        for one in oma.wanted(hist)
        if (one[0].study, one[0].uplink, one[0].snr_db) == (study, uplink, snr) and one[0].rounds
    )
    flags = {} if snr is None else {"snr_db": snr}
    config = case.config(point.seed).changed(uplink=dict(OMA[uplink]), **flags)
    prices = wirelessfl.price(config, point.rounds, joules=False)
    (stored,) = (one for one in oma.load() if one.place == point.place)
    assert stored.seconds == pytest.approx(prices.rows[-1]["sim_seconds"], rel=1e-12)


def test_equal_slots_take_the_seconds_of_the_stored_rows(hist):
    """Figure 7c is trained over equal slots: its price is what its rows say."""
    stored = {one.place: one for one in oma.load()}
    found = 0
    for point, _, run in oma.wanted(hist):
        if (point.study, point.uplink) == ("fig7c", SLOTS) and point.rounds is not None:
            seconds = run.rows[point.rounds]["sim_seconds"]
            assert stored[point.place].seconds == pytest.approx(seconds, rel=1e-9)
            found += 1
    assert found


def points(**seconds):
    """Points of seed 1 and 2 at one place; None for a seed that does not reach 80 %."""
    names = {"slots": SLOTS, "ready": READY, "optimal": OPTIMAL, "air": AIR}
    return [
        oma.Point("fig7b", "hist", 4, 60, 0.0, seed, names[name], None if s is None else 5, s)
        for name, values in seconds.items()
        for seed, s in enumerate(values, start=1)
    ]


def test_the_advantage_is_over_the_faster_uplink_of_each_seed():
    found = points(slots=(1.0, 1.0), ready=(8.0, 6.0), optimal=(4.0, 9.0), air=(2.0, 3.0))
    assert oma.advantage(found) == {1: 2.0, 2: 2.0}
    assert oma.advantage(points(ready=(8.0, 6.0), air=(None, 3.0))) == {2: 2.0}
    text = oma.table(points(slots=(8.0, None), optimal=(4.0, None), air=(None, None)))
    row = "| 7b | HIST, 0 dB | at least 5 | at least 8 | not run | not run | at least 4 "
    row += "| not reached | 1 of 2 | 0 of 2 | - |"
    assert row in text


# The map


def test_a_small_map_has_direct_prices():
    (place,) = crossover.measure((10.0,), (3,), seeds=(1,), rounds=2)
    flags = {**crossover.SETTING, "clients": 12, "snr_db": 10.0, "seed": 1}
    for name, uplink in (
        (AIR, {"uplink": "aircomp"}),
        (OPTIMAL, {"uplink": "ofdma", "allocation": "optimal"}),
        (SLOTS, {}),
    ):
        prices = wirelessfl.price(Config.from_flags("hist", **flags, **uplink), 2, joules=False)
        assert place.seconds[name] == pytest.approx(prices.rows[-1]["sim_seconds"] / 2, rel=1e-12)
    assert place.ratio(BEST) == (
        min(place.seconds[READY], place.seconds[OPTIMAL]) / place.seconds[AIR]
    )


def test_one_bit_takes_a_32nd_of_the_time_to_send():
    """With infinitely fast CPUs, nothing else takes time."""
    seconds = []
    for name in (OPTIMAL, OPTIMAL + crossover.ONE_BIT):
        config = crossover.config(3, 0.0, 1, name).changed(cpu_hz=(1e20, 1e20))
        seconds.append(wirelessfl.price(config, 1, joules=False).rows[-1]["sim_seconds"])
    assert seconds[0] / seconds[1] == pytest.approx(32, rel=1e-6)


def test_the_stored_map_has_all_places():
    places = crossover.load()
    wanted = {(snr, clients) for snr in crossover.SNRS for clients in crossover.CLIENTS}
    assert {(place.snr_db, place.clients) for place in places} == wanted
    assert len(places) == len(wanted)
    (corner,) = (p for p in places if (p.snr_db, p.clients) == (20.0, 5))
    assert corner.seconds[READY] == pytest.approx(crossover.seconds(5, 20.0, READY), rel=1e-9)
    assert crossover.ratios(places, BEST).shape == (len(crossover.CLIENTS), len(crossover.SNRS))


def test_the_map_shows_where_both_are_equally_fast():
    """The line runs between ratios below and above 1, in the map that has both."""
    places = [
        crossover.Place(snr, n, dict.fromkeys(crossover.COMPARED, 2.0) | {AIR: 1.0})
        for snr in (0.0, 10.0)
        for n in (5, 10)
    ]
    fast = [one + crossover.ONE_BIT for one in BEST]
    places[0].seconds.update(dict.fromkeys(fast, 0.5))
    figure = finished(crossover.draw(places))
    panels = figure.axes[:3]
    assert titles(figure)[:3] == list(crossover.MAPS)
    assert [len(panel.collections) for panel in panels] == [1, 1, 2]
    assert [text.get_text() for text in panels[2].texts] == ["0.5", "2.0", "2.0", "2.0"]


# Findings


@pytest.fixture(scope="module")
def ours():
    return Evidence.of(PAPER)


def page(name):
    """A page of ``docs`` without marks."""
    return re.sub("<!--.*?-->", "", (DOCS / name).read_text(encoding="utf-8"))


def numbers(text):
    """The numbers of a text, as they are written."""
    return re.findall(r"(?<![\w.])\d+(?:\.\d+)?", text)


@pytest.mark.parametrize(
    ("name", "places"),
    [("masks", [4]), ("oma", [3]), ("crossover", [7]), ("conventions", [1, 2]),
     ("selection", [5]), ("energy", [3, 6])],
)  # fmt: skip
def test_the_choices_have_the_numbers_of_the_findings(name, places, hist, ours):
    """Each number of the table in choosing.md is one of these findings, rounded."""
    (row,) = (
        line.split(" | ")
        for line in (DOCS / "guides" / "choosing.md").read_text(encoding="utf-8").splitlines()
        if line.endswith(f"`python -m experiments.decided {name}` |")
    )
    parts = page("results/decided.md").partition("## Findings")[2].split("\n\n")[1:]
    known = {float(one) for place in places for one in numbers(parts[place])}
    if name == "masks":  # the sizes alone are in the figure
        alone = masks._relative(ours.study("masks"), oma.load(), hist.study("fig6"))["sizes"]
        known |= {100 * (1 - geometric_mean(seconds)) for seconds in alone.values()}
    for one in numbers(re.sub(r"\(\[.*?\]\(.*?\)\)", "", row[2])):
        digits = len(one.partition(".")[2])
        assert float(one) in {round(value, digits) for value in known}, one


def test_findings_have_the_numbers_of_prices(hist, ours, monkeypatch):
    """Other prices change them, and other numbers not."""
    before = findings.numbers(hist, ours)
    ratios = crossover.ratios(crossover.load(), BEST)
    assert before["map, best"] == f"{ratios.min():.1f} to {ratios.max():.0f}"
    doubled = [
        one if one.uplink == AIR or one.seconds is None else one._replace(seconds=2 * one.seconds)
        for one in oma.load()
    ]
    monkeypatch.setattr(oma, "load", lambda: doubled)
    after = findings.numbers(hist, ours)
    times = [float(one["air, by SNR"].partition(" ")[0]) for one in (before, after)]
    assert times[1] == pytest.approx(2 * times[0], abs=1)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"air, by SNR", "air, by clients", "sizes, slots", "sizes, bands"}


# Conventions


def test_the_published_convention_is_45_db_noisier(hist):
    """The pages say so, with the accuracies of a random beamformer and of OMA at -10 dB."""
    assert conventions.excess_db(hist) == pytest.approx(45.2, abs=0.05)
    figure, other = hist.study("fig7d"), hist.study("fig7a")
    (case,) = figure.where(convention="physical", beamformer="random")
    (over_oma,) = other.where(uplink="tdma")
    runs = figure.of(case), other.of(over_oma)[:3]
    assert [[run.seed for run in some] for some in runs] == [[1, 2, 3]] * 2
    found = [f"{statistics.mean(conventions.accuracies(some, 40)):.1f}" for some in runs]
    assert found == ["80.2", "80.0"]
    for name in ("decided.md", "hist.md"):
        text = " ".join(page(f"results/{name}").split())
        assert all(word in text for word in ("45 dB", *found)), name


# Runs at scale smoke


class Reproduced(dict):
    """The runs of an experiment, which is reproduced when a test first asks for it."""

    def __init__(self, out):
        super().__init__()
        self.out = out

    def __missing__(self, name):
        (self[name],) = PAPER.reproduce([name], "smoke", self.out, make=True).values()
        return self[name]


@pytest.fixture(scope="module")
def found(tmp_path_factory, figures):
    return Reproduced(tmp_path_factory.mktemp("decided"))


@pytest.mark.thorough
def test_every_selection_has_its_accuracy_seconds_and_joules(found, figures):
    results = found["selection"]
    names = ["random", "soonest", "best-channel", "age", "round-robin"]
    panels = figures["selection"].axes
    assert [ticks(panel) for panel in panels] == [names] * 3
    finals = [results.finals(case)[0] for case in results.where()]
    assert [*panels[0].lines[0].get_ydata()] == pytest.approx(finals)
    for panel, (_, text) in zip(panels[1:], selection.AXES, strict=True):
        assert panel.get_ylabel() == f"{text} to 75 %"
    cost = {case["select"]: results.rows(case)[0][-1]["sim_seconds"] for case in results.where()}
    assert min(cost, key=cost.__getitem__) == "soonest"


def test_seconds_with_optimised_masks_are_relative_to_those_of_the_same_seed(hist):
    """Seconds of a seed over those with uniform masks and equal slots, from rows and prices."""
    results = PAPER.study("masks", "small").results(PAPER.store("small", Path("results")))
    figure = hist.study("fig6")
    relative = masks._relative(results, oma.load(), figure)
    priced = oma.of(oma.load(), study="fig6", algorithm="hist", cells=4, uplink=SLOTS)
    before = {point.seed: point.seconds for point in priced}
    for name, source in (("sizes", figure), ("sizes and bandwidth", results)):
        (case,) = source.where(cells=4, mask_sizes="optimized")
        seconds = {
            run.seed: cost_to(run.rows, oma.TARGET).row["sim_seconds"] for run in source.of(case)
        }
        ratios = [seconds[seed] / before[seed] for seed in seconds]
        assert relative[name][4] == pytest.approx(ratios)
        assert len(set(ratios)) == len(ratios) >= 3


def test_conventions_stand_beside_the_figure(found, hist, figures):
    """Each convention is shown at each SNR; the published one and OMA are those of Figure 7a."""
    results = found["conventions"]
    labels = {conventions.label(case) for case in results.study.cases}
    assert labels == set(conventions.LABELS) - {conventions.OMA, conventions.PUBLISHED}
    runs = conventions.runs_of(results, hist.study("fig7a"))
    assert sorted(runs[conventions.OMA]) == [-20.0, 0.0]
    assert sorted(runs[conventions.PUBLISHED]) == [-20.0, 0.0]
    (over_oma,) = hist.study("fig7a").where(uplink="tdma")
    assert runs[conventions.OMA][0.0] == hist.study("fig7a").of(over_oma)[:1]
    rows = [{"round": n, "accuracy": n / 100, "loss": 1.0} for n in range(9)]
    run = StoredRun({}, rows, {}, {}, 1.0)
    assert conventions.accuracies([run], 6) == [pytest.approx(4.0)]  # rounds 2 to 6
    assert legend(figures["conventions"]) == [one for one in conventions.LABELS if one in labels]


def test_signs_have_votes_and_values_have_none(found, figures):
    """Each convention is drawn at each SNR; only signs have wrong votes, and a bit per element."""
    results = found["votes"]
    assert legend(figures["votes"]) == [*votes.LABELS.values()]
    lines = [line.split(" | ") for line in votes.table(results).splitlines()[2:]]
    wrong = {line[0].removeprefix("| "): line[-3] for line in lines}
    assert [text == "- / -" for text in wrong.values()] == [True, True, False, False]
    mib = [float(line[-2]) for line in lines]
    assert mib[0] == mib[1] == pytest.approx(32 * mib[2], rel=0.02)
    assert mib[2] == mib[3]
    (case,) = results.where(convention="majority", snr_db=0.0)
    rates = [row["air_error_votes"] for row in results.rows(case)[0][1:]]
    mean = votes.mean_of(results.of(case), "air_error_votes")
    assert mean == pytest.approx(statistics.mean(rates))


# Energy


@pytest.fixture(scope="module")
def costs(tmp_path_factory):
    """The designs of a short run, whose target is reached in its first round."""
    flags = {"dataset": "digits", "rounds": 2, "local_steps": 2, "hidden": (8,), "clients": 6}
    out = tmp_path_factory.mktemp("run")
    config = Config.from_flags("hist", **flags, cells=2, snr_db=0.0, threads=1, out=out / "a")
    run = StoredRun.of(wirelessfl.run(config))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(energy.TARGETS, energy.CELLS, run.rows[1]["accuracy"])
        return energy.costs(energy.CELLS, run, {"network": {"snr_db": 5.0}})


def test_the_figure_of_energy_has_a_point_per_design(costs, tmp_path):
    records.save(costs, tmp_path / "a.json")
    assert energy.load(tmp_path / "a.json") == costs
    figure = finished(energy.draw(costs))
    (panel,) = figure.axes
    means = [line for line in panel.get_lines() if not str(line.get_label()).startswith("_")]
    drawn = [at for line in means for at in line.get_xydata().tolist()]
    assert drawn == [[one.seconds, one.joules] for one in costs]
    assert legend(figure) == [
        shown(EQUAL),
        shown(OPTIMAL),
        energy.DEADLINE,
        energy.WEIGHT,
    ]
    numbers = [f"{factor:g}" for factor in (*energy.DEADLINES, *energy.WEIGHTS)]
    assert [text.get_text() for text in panel.texts] == numbers
    assert energy.draw([]) is None


def test_a_run_below_the_target_has_no_costs(hist):
    (case,) = hist.study("fig7b").where(algorithm="hist", uplink="tdma")
    run = hist.study("fig7b").of(case)[0]
    assert energy.costs(energy.CELLS, replace(run, rows=run.rows[:2]), {}) == []


def test_stored_costs_are_those_of_the_stored_runs(hist):
    """If this fails after new rows: ``python -m experiments.decided energy --make`` prices them."""
    ours = Evidence.of(PAPER)
    stored = {(c.network, c.seed, c.design): c for c in energy.load()}
    found = 0
    for network, run, changes in energy.sources(hist, ours):
        until = cost_to(run.rows, energy.TARGETS[network])
        if not until.reached:
            continue
        found += 1
        cost = stored[network, run.seed, OPTIMAL]
        assert cost.rounds == until.row["round"]
        if not changes:  # the uplink of the run itself
            assert cost.seconds == pytest.approx(until.row["sim_seconds"], rel=1e-9)
            assert cost.joules == pytest.approx(until.row["joules"], rel=1e-9)
    designs = 2 + len(energy.DEADLINES) + len(energy.WEIGHTS)
    assert len(stored) == found * designs == len(energy.load())
