"""Studies state every setting: defaults of the package that change later change no study."""

import tomllib

import pytest

from experiments import stated as module
from experiments.fadamgc.methods import METHODS
from experiments.fadamgc.search import Search
from experiments.papers import papers
from experiments.stated import DEFAULTS, identities, identity, stated, unstated
from experiments.studies import SCALES
from wirelessfl.config import Config
from wirelessfl.results.archive import effective


@pytest.fixture
def defaults(monkeypatch):
    """The content of ``defaults.toml``, which tests may change."""
    content = tomllib.loads(DEFAULTS.read_text(encoding="utf-8"))
    monkeypatch.setattr(module, "_defaults", lambda: content)
    return content


@pytest.mark.parametrize("name", papers())
def test_studies_leave_no_setting_to_the_package(name):
    """Every setting with an effect is given by the study or by ``defaults.toml``."""
    paper, tried = papers()[name], set()
    for scale in SCALES:
        for study in paper.studies(scale):
            for case in study.cases:
                choices = ("model", "uplink", "algorithm", "split", "dataset", "warm_start")
                kind = (frozenset(case.settings), *(str(case[name]) for name in choices))
                if kind in tried:
                    continue
                tried.add(kind)
                config = case.config(case.seeds[0])
                assert unstated(config, {*case.settings, "seed"}) == [], study.name
    assert tried


def test_the_search_leaves_no_setting_to_the_package():
    search = Search.load("small")
    flags = {*search.common, "algorithm", "lr", "server_lr", "rounds", "tracking_clients"}
    for method in METHODS:
        assert unstated(search.config(method, search.pairs[0], 3), flags) == []


def test_a_default_that_changed_does_not_change_a_run(defaults):
    """If ``defaults.toml`` differs from the package, its value is set, unless it was given."""
    today = Config.from_flags("hist", clients=8)
    assert stated(today, {"clients"}) is today
    defaults["network"]["antennas"] = 3
    defaults["algorithm"]["hist"]["mask_overlap"] = 0.5
    defaults["split"] |= {"name": "dirichlet", "dirichlet": {"alpha": 0.7}}
    then = stated(today, {"clients"})
    assert then.network.antennas == 3
    assert then.algorithm["mask_overlap"] == 0.5
    assert then.split["name"] == "dirichlet"
    assert stated(then, {"clients"}).split["alpha"] == 0.7
    given = stated(Config.from_flags("hist", clients=8, antennas=10), {"clients", "antennas"})
    assert given.network.antennas == 10
    assert given.split["name"] == "dirichlet"


def test_a_default_that_changed_does_not_change_a_task(defaults):
    words = {"clients": 8, "requests": 4, "option": "D"}
    words["task"] = ("digits", "digits,name=b,model=mlp")
    today = Config.from_flags("fedast", **words)
    defaults["algorithm"]["fedast"]["weight_decay"] = 0.1
    defaults["implied"]["fedast"]["schedule.period"] = 2.0
    defaults["model"]["mlp"]["dropout"] = 0.5
    then = stated(today, set(words))
    assert [task.algorithm["weight_decay"] for task in then.tasks.values()] == [0.1, 0.1]
    assert (today.schedule["period"], then.schedule["period"]) == (0.75, 2.0)
    assert [task.model["dropout"] for task in then.tasks.values()] == [0.0, 0.5]


def test_names_of_runs_ignore_paths_machine_and_new_settings(defaults, tmp_path):
    """The name depends on settings with an effect, except those equal to ``defaults.toml``."""
    name = identity(Config.from_flags("hist", clients=8))
    for flags in (
        {"out": tmp_path},
        {"data_dir": tmp_path},
        {"threads": 1, "workers": 2, "executor": "loop"},
        {"antennas": 10},
    ):
        assert identity(Config.from_flags("hist", clients=8, **flags)) == name
    others = ({"seed": 2}, {"antennas": 9}, {"lr": 0.2}, {"split": "iid"}, {"uplink": "aircomp"})
    names = {identity(Config.from_flags("hist", clients=8, **flags)) for flags in others}
    assert len({name, *names}) == 1 + len(others)
    del defaults["network"]["antennas"]  # as if the setting were new
    assert identity(Config.from_flags("hist", clients=8)) != name
    defaults["network"]["antennas"] = 10
    assert identity(Config.from_flags("hist", clients=8)) == name


def test_settings_of_tasks_are_part_of_the_name():
    def name(*tasks):
        return identity(Config.from_flags("fedast", clients=8, requests=4, task=tasks))

    assert name("digits", "mnist") == name("digits", "mnist,lr=0.1")
    assert len({name("digits", "mnist"), name("digits", "mnist,lr=0.2"), name("digits")}) == 3
    config = Config.from_flags("fedast", clients=8, requests=4, task=("digits", "mnist"))
    assert effective(config)["tasks"].keys() == {"digits", "mnist"}


@pytest.mark.parametrize("tasks", [{}, {"task": ("digits", "mnist")}])
def test_names_of_several_seeds_are_those_of_single_runs(tasks):
    config = Config.from_flags("fedast", clients=8, requests=4, seed=1, **tasks)
    names = identities(config, (1, 2, 7))
    assert names == [identity(config.with_run({"seed": seed})) for seed in (1, 2, 7)]
    assert len(set(names)) == 3


def test_the_tokenizer_follows_the_model():
    """A study that leaves the tokenizer out gets that of its model."""
    for model, tokenizer in (("gpt2-lora", "gpt2"), ("text-mean", "words")):
        config = Config.from_flags("fedavg", dataset="sst2", model=model)
        assert stated(config, {"dataset", "model"}) is config
        assert config.data.tokenizer == tokenizer
