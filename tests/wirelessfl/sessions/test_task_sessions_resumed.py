"""Runs of tasks in sessions resume as if they had not ended; what does not fit them is refused."""

import pytest

import wirelessfl
from tests.wirelessfl.sessions.task_flags import FLAGS, TASKS
from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.pricing import price
from wirelessfl.runs.timeline import timeline

RESUMED = {
    "proposed": ("fedavg", {"warm_start": "proposed", "trial_rounds": 2, "momentum": 0.5}),
    "continuous": ("fedavg", {"warm_start": "continuous", "assignment": "bayes"}),
    "scaffold": (
        "scaffold",
        {
            "warm_start": "proposed", "presence": "arrivals", "arrival_rate": 2.0,
            "mean_stay": 2.0, "presence_unit": "rounds", "client_states": "disk",
        },
    ),
    "seconds": (
        "fedadam",
        {
            "presence": "arrivals", "arrival_rate": 150.0, "mean_stay": 0.03, "drop_out": 0.2,
            "assignment": "bandit",
        },
    ),
}  # fmt: skip


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("case", RESUMED)
def test_resumed_run_equals_an_uninterrupted_run(config, same, halt_at, case, copies):
    """Resume from copies of the run's folder at every third row, and after an interrupt."""
    name, flags = RESUMED[case]
    flags = FLAGS | TASKS | {"checkpoint_seconds": 0, "sessions": 3} | flags
    settings = config(name, **flags)
    reference = wirelessfl.run(settings, on_row=copies.of(settings.run.out))
    if "presence" in flags:
        assert len({row["present"] for row in reference.rows}) > 1
        assert reference.rows[-1]["dropped"] > 0
    for folder in copies[[*RESUMED].index(case) % 3 :: 3]:
        same(wirelessfl.resume(folder), reference)
    settings = config(name, **flags)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, on_row=halt_at(len(reference.rows) // 2))
    same(wirelessfl.resume(settings.run.out), reference)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"task": ["digits,rounds=2", "digits"]},
            "task 'digits': rounds=2 conflicts with sessions=4, in which all tasks have the same "
            "rounds: leave it out, or set rounds of the whole run, now 3.",
        ),
        ({"eval_seconds": 1.0}, "eval_seconds=1.0 conflicts with sessions=4, which evaluate after"),
        ({"schedule": "buffered"}, 'which has no sessions: choose schedule "rounds" or'),
        ({"schedule": "rounds"}, 'trains one model of algorithm "fedavg", but there are 2 task'),
    ],
)
def test_refusals(flags, message):
    with pytest.raises(ConfigError) as error:
        Config.from_flags("fedavg", **FLAGS | TASKS | flags)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_prices_and_timelines_are_refused(config):
    settings = config("fedavg", **FLAGS | TASKS)
    with pytest.raises(ConfigError, match="sessions=4: this timeline does not show"):
        timeline(settings, 1.0)
    with pytest.raises(ConfigError, match="no price without training"):
        price.price(settings)
