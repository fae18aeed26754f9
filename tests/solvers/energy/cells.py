"""Random cells for ``allocate_energy``, and the energy and limits of its plans."""

import numpy as np

from solvers import allocate_bandwidth

LN2 = np.log(2)


def drawn(random, *shape, regime="mixed", band=1e7):
    """Clients in a cell of 500 m with bits over three decades.

    Power limits are slack, or such that clients with a share of the band each need equally long
    (active), or ten times that for half of them (mixed).
    """
    km = np.sqrt(random.uniform(1e-4, 0.25, shape))
    loss = 128.1 + 37.6 * np.log10(km) + 8 * random.standard_normal(shape)  # 3GPP, in dB
    gain = 10 ** (-loss / 10) / 10 ** (-17.4 - 3)
    bits = 10 ** random.uniform(3.5, 6.5, shape)
    power = np.full(shape, 10.0)
    if regime != "slack":
        share = band * bits**0.7 / (bits**0.7).sum(-1, keepdims=True)
        load = bits / share
        load *= 10 ** random.uniform(0, 1, (*shape[:-1], 1)) / load.max(-1, keepdims=True)
        power = share * np.expm1(load) / gain  # 1 to 10 nats per Hz s at most
        power *= 10 ** (random.integers(0, 2, shape) if regime == "mixed" else 0)
    return {
        "bits": bits,
        "cycles": random.uniform(5e6, 1.5e7, shape) * 10 ** random.uniform(0, 1.5, shape),
        "gain_per_noise": gain,
        "bandwidth_hz": band,
        "max_power_watts": power,
        "max_cpu_hz": random.uniform(5e8, 3e9, shape),
        "kappa": 1e-28,
    }


def least_seconds(problem):
    return allocate_bandwidth(
        problem["bits"],
        problem["cycles"] / problem["max_cpu_hz"],
        problem["gain_per_noise"] * problem["max_power_watts"],
        problem["bandwidth_hz"],
    ).objective


def joules(problem, plan):
    computed = problem["kappa"] * problem["cycles"] * plan.cpu_hz**2
    return (plan.power_watts * plan.upload_seconds + computed).sum(-1)


def assert_within_limits(problem, plan, end, tolerance=1e-11):
    """Bits are delivered in time within the band, at no more than full power and speed."""
    band, seconds, power, speed, _ = plan
    total = np.asarray(problem["bandwidth_hz"])
    assert (band.sum(-1) <= total * (1 + tolerance)).all()
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.nan_to_num(band * np.log1p(power * problem["gain_per_noise"] / band) / LN2)
        busy = np.where(problem["cycles"] == 0, 0.0, problem["cycles"] / speed)
    assert (rate * seconds >= problem["bits"] * (1 - tolerance)).all()
    assert ((busy + seconds).max(-1) <= end * (1 + tolerance)).all()
    assert (power <= problem["max_power_watts"]).all()
    assert (speed <= problem["max_cpu_hz"]).all()
