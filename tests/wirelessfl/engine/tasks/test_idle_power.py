"""Idle power of devices in requests and in rounds of tasks, by hand."""

import pytest

import wirelessfl
from channels import Device, Network

SLOW = Device(name="slow", seconds_per_sample=0.05, watts=2.0, idle_watts=0.5, transmit_watts=1.0)
FAST = Device(name="fast", seconds_per_sample=0.0125, watts=4.0, idle_watts=0.3, transmit_watts=1.0)
FLAGS = {"network": True, "local_steps": 1, "batch_size": 8, "rounds": 1, "eval_every": 1}
DOWN = {"downlink_mbps": 0.01}


def network(*devices):
    return Network.from_snr([0] * len(devices), devices=list(devices), snr_db=20.0)


def joules(config, toy, over, **flags):
    """Joules of all clients, and simulated seconds, at the end."""
    prices = wirelessfl.price(config("fedavg", **FLAGS | flags), data=toy, network=over)
    last = prices.rows[-1]
    return last["joules"] * over.clients, last["sim_seconds"]


def test_a_request_by_hand(config, toy):
    """Training 0.4 s at 2 W; receiving is idle, and links of uplink fixed are busy, but free."""
    flags = {"schedule": "buffered", "requests": 1, "buffer": 1, "uplink": "fixed"}
    flags |= {"rate_mbps": 0.02} | DOWN
    spent, seconds = joules(config, toy, network(SLOW), **flags)
    down = 2 * (seconds - 0.4) / 3  # at half of the rate of the upload
    assert down > 0.1
    assert spent == pytest.approx(0.4 * 2.0 + down * 0.5, rel=1e-9)


def test_requests_that_share_a_band_wait_for_their_turns(config, toy):
    """Of the time on the air with equal slots, half is sending and half waiting."""
    flags = {"schedule": "buffered", "requests": 2, "buffer": 2, "uplink": "tdma"}
    awake = Device(name="awake", seconds_per_sample=0.05, watts=2.0, transmit_watts=1.0)
    apart = 0
    for seed in range(4):
        without, seconds = joules(config, toy, network(awake, awake), **flags, seed=seed)
        spent, same = joules(config, toy, network(SLOW, SLOW), **flags, seed=seed)
        assert seconds == same
        if seconds > 0.8:  # both requests are at one client, which never waits
            assert spent == pytest.approx(without, rel=1e-12)
            continue
        # Someone sends from 0.4 s until the last update has arrived. Until the first has, the
        # other one waits, half of the time each.
        apart += 1
        sending = without - 2 * 0.4 * 2.0
        assert sending == pytest.approx(seconds - 0.4, rel=1e-9)
        assert 0.5 * 0.5 * sending < spent - without < 0.5 * sending
    assert 0 < apart < 4


def test_updates_over_the_air_wait_for_each_other(config, toy):
    """The fast client holds its update until the slow one has trained; both then send at once."""
    flags = {"schedule": "buffered", "requests": 2, "buffer": 2, "uplink": "aircomp"}
    spent, seconds = joules(config, toy, network(SLOW, FAST), **flags)
    awake = [Device(name=d.name, seconds_per_sample=d.seconds_per_sample, watts=d.watts,
                    transmit_watts=1.0) for d in (SLOW, FAST)]  # fmt: skip
    without, same = joules(config, toy, network(*awake), **flags)
    assert seconds == same > 0.4
    assert spent - without == pytest.approx(0.3 * (0.4 - 0.1), rel=1e-9)


@pytest.mark.parametrize("uplink", ["fixed", "aircomp"])
def test_rounds_of_tasks_last_until_the_slowest(config, toy, uplink):
    """As rounds of one model: each client waits until the last one has sent."""
    over = network(SLOW, FAST)
    rounds = joules(config, toy, over, uplink=uplink)
    assert joules(config, toy, over, uplink=uplink, schedule="simultaneous") == pytest.approx(
        rounds, rel=1e-9
    )


def test_clients_that_are_stopped_wait_and_those_that_drop_out_do_not(config, toy):
    """The slow client is stopped at 0.1 s, as the round ends; of 40 equal ones, none waits."""
    flags = {"schedule": "simultaneous", "uplink": "fixed", "rate_mbps": 1e9}
    spent, seconds = joules(config, toy, network(SLOW, FAST), **flags, first=1)
    assert seconds == pytest.approx(0.1, rel=1e-6)
    assert spent == pytest.approx(0.1 * (2.0 + 4.0), rel=1e-6)
    spent, seconds = joules(config, toy, network(*[FAST] * 40), **flags, drop_out=0.5)
    training = wirelessfl.price(
        config("fedavg", **FLAGS | flags, drop_out=0.5), data=toy,
        network=network(*[Device(name="f", seconds_per_sample=0.0125, watts=4.0)] * 40),
    ).rows[-1]["joules"] * 40  # fmt: skip
    assert spent == pytest.approx(training, rel=1e-6)
