"""Each contract catches a class that breaks it, and that one alone; good classes pass."""

from dataclasses import replace

import pytest

import wirelessfl
from tests.wirelessfl.checking import broken, broken_functions
from wirelessfl.checking import check
from wirelessfl.checking.algorithms import CONTRACTS as ALGORITHM
from wirelessfl.checking.kinds import CHECKED, kind_of
from wirelessfl.checking.runs import BASIC, CREATED, EXECUTORS
from wirelessfl.errors import ConfigError
from wirelessfl.losses.built_in import MSE
from wirelessfl.metrics.built_in import MAE
from wirelessfl.observers import EarlyStopping

SLOW = {EXECUTORS.name, *(found.name for found in ALGORITHM if found.name.startswith("works "))}
TWICE = BASIC[1].name
RESUMES = BASIC[2].name


@pytest.fixture
def quick(monkeypatch):
    """Limit a kind to its contracts without runs, and those that are named."""

    def limit(kind, *names):
        runs = {found.name for found in BASIC} | SLOW
        wanted = [
            found
            for found in CHECKED[kind].contracts
            if found.name in names or not (found.name in runs or {*found.needs} & runs)
        ]
        monkeypatch.setitem(CHECKED, kind, replace(CHECKED[kind], contracts=tuple(wanted)))

    return limit


CASES = [
    (broken.Drawing, "algorithm", "its rules give the same answer twice", "draw no random"),
    (
        broken.InPlace,
        "algorithm",
        "does not change its input",
        "it changes cohort.server in 'params'",
    ),
    (
        broken.InPlaceMerge,
        "algorithm",
        "does not change its input",
        "it changes the server's state",
    ),
    (broken.KeptChanged, "algorithm", "does not change its input", "it changes cohort.kept"),
    (broken.OverClients, "algorithm", "treats each client on its own", "send returns other values"),
    (broken.OverCoordinates, "algorithm", "ignores the padding of submodels", "do not average"),
    (broken.Unhashable, "algorithm", "has valid settings", "its setting widths is a list"),
    (broken.Unpicklable, "algorithm", "can be sent to worker processes", "Define the class at"),
    (broken.OwnDraws, "split", "deals the same samples for equal streams", "stream.generator()"),
    (broken.ShuffledLabels, "split", "does not change its input", "it changes samples in 'labels'"),
    (broken.Early, "uplink", "lets no update arrive before its client has trained", "trains for"),
    (
        broken.Waiting,
        "uplink",
        "says whether clients of a cell wait for each other",
        "coupled = True",
    ),
    (broken.OverBlocks, "uplink", "serves several channel draws at once", "along the last axis"),
    (broken.ChangedLoad, "uplink", "does not change its input", "it changes load.elements"),
    (broken.Hurried, "uplink", "takes no less time for more elements", "for twice the elements"),
    (broken.Counted, "uplink", "serves a load the same way twice", "keep no state"),
    (broken.OverDuty, "uplink", "gives rates at any time", "2.0 as duty"),
    (broken.Lucky, "select", "chooses the same clients for equal candidates", "candidates.stream"),
    (broken.Renumbering, "select", "does not change its input", "it changes candidates.weights"),
    (broken.ByNumber, "fading", "draws each client on its own", "stream.normals"),
    (broken.Loud, "fading", "has mean power 1", "the mean power per antenna is 2"),
    (broken.Moody, "failures", "gives the same probabilities twice", "it must not draw"),
    (broken.Mixing, "compression", "compresses each node on its own", "each row on its own"),
    (broken.Overwriting, "compression", "does not change its input", "it changes flat"),
    (broken.Decaying, "lr_schedule", "depends on the round number alone", "from the round number"),
    (broken.Amnesiac, "assignment", "is restored from its state", "store all that it has learnt"),
    (
        broken.Doubling,
        "warm_start",
        "does not change its input",
        "it changes the tensors of opening",
    ),
    (broken_functions.no_gradient, "loss", "has a gradient", "its gradient is 0 everywhere"),
    (broken_functions.overwriting, "loss", "does not change its input", "it changes labels"),
    (broken_functions.noisy, "loss", "gives the same loss twice", "draw no random numbers"),
    (
        broken_functions.weighted,
        "loss",
        "does not depend on the other samples of a batch",
        "as in a weighted mean",
    ),
    (
        broken_functions.OfBatch,
        "loss",
        "does not depend on the other samples of a batch",
        "depends on the other samples of its batch",
    ),
    (
        broken_functions.OtherInVmap,
        "loss",
        "gives the same by vmap and in a loop",
        "torch.vmap gives another loss",
    ),
    (broken_functions.as_text, "metric", "returns a number, or a list of numbers", "'0.5'"),
    (
        broken_functions.of_samples,
        "metric",
        "returns a number, or a list of numbers",
        "depends on the number of samples",
    ),
    (broken_functions.sorting, "metric", "does not change its input", "it changes labels"),
    (broken_functions.counting, "metric", "gives the same value twice", "keep no state"),
    (
        broken_functions.moody,
        "network",
        "returns the same network for the same stream",
        "two calls with equal streams differ",
    ),
    (broken_functions.own_class, "network", "is stored and read back", "return a channels.Network"),
    (broken.dealt, "dataset", "returns the same samples twice", "train_inputs differ"),
    (broken.one_label, "dataset", "has samples of every label", "no test sample has label 2"),
]


@pytest.mark.parametrize(("thing", "kind", "contract", "reason"), CASES)
def test_a_contract_catches_what_breaks_it(thing, kind, contract, reason, quick):
    quick(kind)
    report = check(thing)
    assert report.kind == kind
    assert report.failed == [contract], str(report)
    found = next(found for found in report.outcomes if found.status == "failed")
    assert reason in found.reason
    assert "\n" not in found.reason
    assert not report.passed


@pytest.mark.parametrize(
    ("thing", "contract", "reason"),
    [
        (broken_functions.Flattering, "does not change rows", "work on a copy"),
        (broken_functions.Forgetful, RESUMES, "after an interruption, one run has 4 rows"),
        (broken_functions.Talking, BASIC[0].name, "returned 3. Return None, or the reason to end"),
    ],
)
def test_observers(thing, contract, reason):
    report = check(thing)
    assert report.kind == "observer"
    assert report.failed == [contract], str(report)
    assert reason in str(report)


@pytest.mark.parametrize(
    ("thing", "kind"),
    [
        (lambda outputs, labels: (outputs.squeeze(1) - labels).square().mean(), "loss"),
        (lambda outputs, labels: float((outputs.argmax(1) == labels).sum()), "metric"),
        (MAE, "metric"),
        (lambda stream: broken_functions.section_vi_c(1, 6, stream=stream), "network"),
        (lambda: EarlyStopping(2), "observer"),
        (EarlyStopping(2), "observer"),
    ],
)
def test_the_kind_is_told_from_what_is_returned(thing, kind):
    assert kind_of(thing) == kind


def test_a_loss_of_regression_is_checked_with_real_labels(quick):
    quick("loss")
    assert check(MSE).passed
    quick("metric")
    assert check(MAE).passed


@pytest.mark.parametrize(
    ("thing", "contract", "reason"),
    [
        (broken.NotFinite, BASIC[0].name, "its loss is not finite"),
        (broken.Counting, TWICE, "keep no state in the class"),
        (broken.Forgetful, RESUMES, "after an interruption, "),
    ],
)
def test_runs_catch_what_breaks_them(thing, contract, reason, monkeypatch):
    runs = replace(CHECKED["algorithm"], contracts=(CREATED, *BASIC))
    monkeypatch.setitem(CHECKED, "algorithm", runs)
    report = check(thing)
    assert report.failed == [contract], str(report)
    assert reason in str(report)


def test_a_scheduler_that_forgets_its_state():
    report = check(broken.Growing)
    assert report.failed == [RESUMES], str(report)


def test_a_model_that_mixes_samples(quick):
    """It trains one client at a time; executors that pad batches are not tested."""
    quick("model", BASIC[0].name, EXECUTORS.name)
    report = check(broken.Mixed)
    assert report.failed == []
    assert next(f for f in report.outcomes if f.contract == EXECUTORS.name).status == "skipped"


def test_an_access_is_checked_as_part_of_an_uplink(quick):
    quick("uplink")
    report = check(broken.Slots)
    assert report.kind == "uplink"
    assert report.passed, str(report)


def test_a_class_without_an_import_path(quick):
    quick("algorithm")
    local = type("Local", (broken.FedAvg,), {"__module__": "__main__"})
    report = check(local, lr=0.5)
    assert report.failed == ["can be sent to worker processes"], str(report)


@pytest.mark.parametrize(
    ("thing", "options", "message"),
    [
        ("fedavg", {}, "'fedavg' is not an import path"),
        ("nowhere_at_all:X", {}, "there is no module 'nowhere_at_all'"),
        (3, {}, "3 matches no kind: derive it"),
        (broken.Lucky, {"kind": "selection"}, "kind is 'selection'. Do you mean"),
        (broken.Lucky, {"kind": "uplink"}, "give a class derived from wirelessfl.uplinks.Uplink"),
    ],
)
def test_what_cannot_be_checked_is_one_line(thing, options, message):
    with pytest.raises(ConfigError) as caught:
        wirelessfl.check(thing, **options)
    assert message in str(caught.value)


def test_wrong_settings_fail_the_first_contract():
    report = check(broken.Drawing, foo=1)
    assert report.failed == [CREATED.name]
    assert "unknown setting 'foo'" in str(report)
    assert str(report).count("\n") == 2  # contracts that need it are only counted
