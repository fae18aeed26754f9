"""Each contract catches classes and functions that break it; good ones pass all of them."""

import importlib

import pytest
import torch
from torch import nn

import wirelessfl
from channels import section_vi_c
from tests.wirelessfl.designs.own import declared, undeclared
from tests.wirelessfl.runs.checking import broken
from wirelessfl import Config, Redesign
from wirelessfl.air.uplinks import UPLINKS
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.losses.built_in import MSE
from wirelessfl.models.metrics.built_in import MAE
from wirelessfl.observers import EarlyStopping
from wirelessfl.runs.checking import check
from wirelessfl.runs.checking.contracts import CONTRACTS, TRAINS, VALID
from wirelessfl.runs.checking.kinds import kind_of

_, PICKLED, _, PURE, _, RESUMES, AGREE, CELLS, RATES, DIVIDED = (
    contract.name for contract in CONTRACTS
)
COPY, STREAMS = "which others use: copy it", "draw from the given streams, and keep no state"


@pytest.fixture
def limited(monkeypatch):
    """Limit the contracts to one and those that it needs."""

    def limit(name):
        chain, by_name = [], {contract.name: contract for contract in CONTRACTS}
        while name:
            chain.insert(0, by_name[name])
            name = chain[0].needs
        module = importlib.import_module("wirelessfl.runs.checking.check")
        monkeypatch.setattr(module, "CONTRACTS", tuple(chain))

    return limit


CASES = [
    (broken.Unhashable, "algorithm", VALID, "its setting widths is a list"),
    (broken.Unpicklable, "algorithm", PICKLED, "Define the class at"),
    (broken.NotFinite, "algorithm", TRAINS, "its loss is not finite"),
    (broken.InPlace, "algorithm", TRAINS, "Please clone() the tensor"),
    (broken.Drawing, "algorithm", PURE, "gradient returns another result for equal"),
    (broken.Counting, "algorithm", PURE, "send returns another result['update']"),
    (broken.InPlaceMerge, "algorithm", PURE, "merge changes its argument server['params'], "),
    (broken.KeptChanged, "algorithm", PURE, "send changes its argument cohort.kept["),
    (broken.Forgetful, "algorithm", RESUMES, "after an interruption, "),
    (broken.OverClients, "algorithm", AGREE, "treat each client"),
    (broken.OwnDraws, "split", PURE, STREAMS),
    (broken.ShuffledLabels, "split", PURE, f"deal changes its argument samples.labels, {COPY}"),
    (broken.ChangedLoad, "uplink", PURE, f"serve changes its argument load.elements, {COPY}"),
    (broken.Counted, "uplink", PURE, "serve returns another result.seconds for"),
    (broken.Crowded, "uplink", CELLS, "the seconds of a cell change if another cell is added"),
    (broken.FourBits, "uplink", RATES, "by rates: schedule buffered asks rates, so count the same"),
    (broken.Lucky, "select", PURE, STREAMS),
    (broken.Renumbering, "select", TRAINS, "select returned 3 clients of cell 0 instead of 1"),
    (broken.ByNumber, "fading", CELLS, "the channels of a cell change"),
    (broken.Moody, "failures", PURE, STREAMS),
    (broken.Overwriting, "uplink_compression", PURE, f"compress changes its argument flat, {COPY}"),
    (broken.Decaying, "lr_schedule", RESUMES, "not in the object"),
    (broken.Amnesiac, "assignment", RESUMES, "where a checkpoint stores it"),
    (broken.Growing, "schedule", RESUMES, "where a checkpoint stores it"),
    (broken.Doubling, "warm_start", PURE, f"initial changes its argument opening.latest, {COPY}"),
    (broken.no_gradient, "loss", TRAINS, "nothing is learnt: the loss is"),
    (broken.overwriting, "loss", PURE, f"overwriting changes its argument labels, {COPY}"),
    (broken.noisy, "loss", TRAINS, "mixes the samples of a batch"),
    (broken.as_text, "metric", TRAINS, "returned '0.5'"),
    (broken.sorting, "metric", PURE, f"sorting changes its argument labels, {COPY}"),
    (broken.counting, "metric", PURE, STREAMS),
    (broken.moody, "network", PURE, "moody returns another result.cpu_hz"),
    (broken.dealt, "dataset", PURE, "dealt returns another result.train_inputs"),
    (broken.Flattering, "observer", PURE, "row changes its argument run.rows[0]['accuracy'], "),
    (broken.Tiring, "observer", RESUMES, "after an interruption, a run has 6 rows instead of 4"),
    (broken.Talking, "observer", TRAINS, "returned 3. Return None, or the reason to end"),
]


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize(("thing", "kind", "contract", "reason"), CASES)
def test_a_contract_catches_what_breaks_it(thing, kind, contract, reason, limited):
    limited(contract)
    report = check(thing)
    assert report.kind == kind
    assert report.failed == [contract], str(report)
    outcome = next(outcome for outcome in report.outcomes if outcome.status == "failed")
    assert reason in outcome.reason
    assert "\n" not in outcome.reason
    assert not report.passed


@pytest.mark.parametrize("contract", [CELLS, RATES])
@pytest.mark.parametrize("uplink", sorted(UPLINKS.classes()))
def test_built_in_uplinks_keep_their_contracts(uplink, contract, limited):
    """Cells are not coupled, and uploads at any time are as fast as those in rounds."""
    limited(contract)
    report = check(UPLINKS.find(uplink))
    assert report.passed, str(report)


def test_methods_are_as_before_after_a_check(limited):
    limited(PURE)
    before = dict(vars(broken.Lucky))
    check(broken.Lucky)
    assert dict(vars(broken.Lucky)) == before


@pytest.mark.parametrize(
    ("thing", "kind"),
    [
        (lambda outputs, labels: (outputs.squeeze(1) - labels).square().mean(), "loss"),
        (lambda outputs, labels: float((outputs.argmax(1) == labels).sum()), "metric"),
        (MAE, "metric"),
        (lambda stream: section_vi_c(1, 6, stream=stream), "network"),
        (lambda: EarlyStopping(2), "observer"),
        (EarlyStopping(2), "observer"),
    ],
)
def test_the_kind_is_told_from_what_is_returned(thing, kind, limited):
    limited(PURE)
    assert kind_of(thing) == kind
    assert check(thing).passed


@pytest.mark.parametrize("thing", [broken.drawn_model, broken.drawn_data])
def test_constructors_and_data_functions_may_draw(thing, limited, recwarn):
    limited(PURE)
    report = check(thing)
    assert report.passed, str(report)
    assert not [warning for warning in recwarn if "has no source file" in str(warning.message)]


def test_a_loss_of_regression_is_checked_with_real_labels(limited):
    limited(PURE)
    assert check(MSE).passed
    assert check(torch.nn.functional.cross_entropy, kind="loss").passed


def test_a_model_that_mixes_samples():
    """It trains one client at a time; executors that pad batches are not tested."""
    report = check(broken.Mixed)
    assert report.failed == []
    assert [o.contract for o in report.outcomes if o.status == "skipped"] == [AGREE, DIVIDED]


def test_an_access_is_checked_as_part_of_an_uplink():
    report = check(broken.Slots)
    assert report.kind == "uplink"
    assert report.passed, str(report)
    assert [o.contract for o in report.outcomes if o.status == "skipped"] == [RATES]
    assert [outcome.contract for outcome in report.outcomes] == [c.name for c in CONTRACTS[:-1]]


def test_a_class_without_an_import_path(limited):
    limited(PICKLED)
    local = type("Local", (broken.FedAvg,), {"__module__": "__main__"})
    report = check(local, lr=0.5)
    assert report.failed == [PICKLED], str(report)


@pytest.mark.parametrize(
    ("thing", "options", "message"),
    [
        ("fedavg", {}, "'fedavg' is not an import path"),
        ("nowhere_at_all:X", {}, "there is no module 'nowhere_at_all'"),
        (3, {}, "3 matches no kind: derive it"),
        (broken.FedAvg(), {}, "give the class, FedAvg, and its settings by name"),
        (nn.Linear(2, 2), {}, "give the class, Linear, and its settings by name"),
        (Config.from_flags("fedavg"), {}, "give one of your classes or functions"),
        (Redesign, {}, "redesigns have no contracts. Give an object to wirelessfl.run"),
        (broken.Lucky, {"kind": "selection"}, "kind is 'selection'. Do you mean"),
        (broken.Lucky, {"kind": "uplink"}, "derived from wirelessfl.extend.Uplink"),
    ],
)
def test_what_cannot_be_checked_is_one_line(thing, options, message):
    with pytest.raises(ConfigError) as caught:
        wirelessfl.check(thing, **options)
    assert message in str(caught.value)


def test_wrong_settings_fail_the_first_contract():
    report = check(broken.Drawing, foo=1)
    assert report.failed == [VALID]
    assert "unknown setting 'foo'" in str(report)
    assert str(report).count("\n") == 2  # contracts that need it are only counted


@pytest.mark.thorough
def test_a_model_says_what_cells_need_to_divide_it():
    """Without declared layers, the contract is skipped with the flag that names them."""
    report = wirelessfl.check(undeclared)
    last = report.outcomes[-1]
    assert report.passed
    assert (last.contract, last.status) == ("can be divided between cells", "skipped")
    assert "e.g. --layers 1,3" in last.reason
    named = wirelessfl.check(declared).outcomes[-1]
    assert (named.contract, named.status) == (last.contract, "ok")
