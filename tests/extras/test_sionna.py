"""Path loss, lines of sight and shadowing against Sionna's TR 38.901 V16.1 (``sionna-no-rt``)."""

import math

import numpy as np
import pytest

import channels
from channels import Disc, InH, Rma, Stream, Uma, Umi, placed_network

pytestmark = [
    pytest.mark.extras,
    # Sionna's own warnings, e.g. of torch functions that will change.
    pytest.mark.filterwarnings("default"),
]
POSITIONS = 100_000
CARRIER_GHZ = 3.5
MODELS = {"umi": (Umi, 500.0), "uma": (Uma, 1000.0), "rma": (Rma, 2000.0), "inh": (InH, 50.0)}


def scenario(name):
    """Sionna's scenario, outdoors, or a mixed office."""
    sionna = pytest.importorskip("sionna.phy.channel.tr38901")
    array = sionna.PanelArray(
        num_rows_per_panel=1,
        num_cols_per_panel=1,
        polarization="single",
        polarization_type="V",
        antenna_pattern="omni",
        carrier_frequency=CARRIER_GHZ * 1e9,
    )
    common = {
        "carrier_frequency": CARRIER_GHZ * 1e9,
        "ut_array": array,
        "bs_array": array,
        "direction": "uplink",
        "precision": "double",
        "spec_version": "16.1",
    }
    kinds = {
        "umi": (sionna.UMiScenario, {"o2i_model": "low"}),
        "uma": (sionna.UMaScenario, {"o2i_model": "low"}),
        "rma": (sionna.RMaScenario, {}),
        "inh": (sionna.InHScenario, {"indoor_scenario": "mixed"}),
    }
    kind, more = kinds[name]
    return kind(**common, **more)


def theirs(name, model, clients_m):
    """Path loss, shadowing and line of sight [clients] by Sionna, each link on its own."""
    pytest.importorskip("sionna.phy")
    import torch
    from sionna.phy import config
    from sionna.phy.channel.tr38901 import LSPGenerator

    config.seed = 1
    there, count = scenario(name), len(clients_m)
    heights = np.full((count, 1), model.client_height_m)
    ends = torch.tensor(np.concatenate([clients_m, heights], axis=1))[:, None]
    station = torch.zeros_like(ends)
    station[..., 2] = model.base_station_height_m
    nothing = torch.zeros_like(ends)
    indoors = torch.full((count, 1), name == "inh")
    there.set_topology(ends, station, nothing, nothing, nothing, indoors)
    generator = LSPGenerator(there)
    generator.topology_updated_callback()
    shadowing = -10 * torch.log10(generator().sf)
    values = (there.basic_pathloss, shadowing, there.los)
    return tuple(value.reshape(count).cpu().numpy() for value in values)


@pytest.mark.parametrize("name", MODELS)
def test_distributions_are_those_of_sionna(name, capsys):
    kind, radius = MODELS[name]
    model = kind(CARRIER_GHZ)
    network = placed_network(
        Disc(radius), model, cells=1, clients=POSITIONS, stream=Stream(1), cpu_hz=1e9
    )
    where = network.placement
    loss, shadowing, sight = theirs(name, model, where.clients_m)
    # The same links. Breakpoints differ slightly: Sionna's speed of light is exact.
    ours = model.loss_db(where.distance_m, sight)
    error = np.abs(ours - loss)
    assert error.max() < 0.01
    # The distributions, each with its own draws.
    assert abs(where.line_of_sight.mean() - sight.mean()) < 5 * math.sqrt(0.5 / POSITIONS)
    points = np.linspace(0.05, 0.95, 19)
    total = where.path_loss_db + where.shadowing_db
    differences = {
        "with shadowing": np.quantile(total, points) - np.quantile(loss + shadowing, points)
    }
    for state in (True, False):
        mine, other = where.line_of_sight == state, sight == state
        differences |= {
            f"mean path loss, LOS {state}": where.path_loss_db[mine].mean() - loss[other].mean(),
            f"std of path loss, LOS {state}": where.path_loss_db[mine].std() - loss[other].std(),
            f"mean shadowing, LOS {state}": (
                where.shadowing_db[mine].mean() - shadowing[other].mean()
            ),
            f"std of shadowing, LOS {state}": (
                where.shadowing_db[mine].std() - shadowing[other].std()
            ),
        }
    with capsys.disabled():
        print(f"\n{name}: same links within {error.max():.4f} dB,", end="")
        print(f" LOS {where.line_of_sight.mean():.4f} and {sight.mean():.4f}")
        for term, difference in differences.items():
            print(f"  {term}: within {np.abs(difference).max():.3f} dB")
    for term, difference in differences.items():
        assert np.abs(difference).max() < 0.5, term


def street(batch, clients):
    """Impulse responses of a street canyon in the uplink, with path loss, by Sionna."""
    pytest.importorskip("sionna.phy")
    import torch
    from sionna.phy import config
    from sionna.phy.channel.tr38901 import PanelArray, UMi

    config.seed = 3

    def array(rows, columns):
        return PanelArray(
            num_rows_per_panel=rows,
            num_cols_per_panel=columns,
            polarization="single",
            polarization_type="V",
            antenna_pattern="omni",
            carrier_frequency=CARRIER_GHZ * 1e9,
        )

    model = UMi(
        carrier_frequency=CARRIER_GHZ * 1e9,
        o2i_model="low",
        ut_array=array(1, 1),
        bs_array=array(2, 2),
        direction="uplink",
        enable_shadow_fading=True,
    )
    dice = np.random.default_rng(4)
    # Clients of the first half are near the first of two base stations.
    near = np.repeat([0.0, 400.0], clients // 2)
    clients_m = np.stack(
        [near + dice.uniform(20, 60, clients), dice.uniform(-40, 40, clients)], axis=1
    )
    heights = np.full((clients, 1), 1.5)
    ends = torch.tensor(np.concatenate([clients_m, heights], 1), dtype=torch.float32)
    stations = torch.tensor([[0.0, 0.0, 10.0], [400.0, 0.0, 10.0]])
    nothing = torch.zeros(batch, clients, 3)
    model.set_topology(
        ends.expand(batch, -1, -1).contiguous(),
        stations.expand(batch, -1, -1).contiguous(),
        nothing,
        torch.zeros(batch, 2, 3),
        nothing,
        torch.zeros(batch, clients, dtype=torch.bool),
        los=True,
    )
    a, tau = model(num_time_samples=2, sampling_frequency=1.0)
    return a, tau, clients_m, stations.numpy()


def test_a_network_replays_the_channels_of_sionna():
    """Impulse responses and OFDM responses of one channel give the same network."""
    a, tau, clients_m, stations = street(batch=5, clients=6)
    from sionna.phy.channel import cir_to_ofdm_channel, subcarrier_frequencies

    count, spacing = 64, 30e3
    frequencies = subcarrier_frequencies(count, spacing)
    h = cir_to_ofdm_channel(frequencies, a, tau)
    where = {"clients_m": clients_m, "base_stations_m": stations}
    for place in (0, 32, 50):
        ours = channels.from_sionna(
            a, tau, cpu_hz=1e9, frequency_hz=spacing * (place - 32), **where
        )
        theirs = channels.from_sionna(h=h, cpu_hz=1e9, subcarrier=place, **where)
        assert ours.cell_of.tolist() == theirs.cell_of.tolist() == [0, 0, 0, 1, 1, 1]
        assert (ours.fading.blocks, ours.antennas) == (10, 4)
        np.testing.assert_allclose(ours.gain_db, theirs.gain_db, atol=1e-3)
        np.testing.assert_allclose(ours.fading.h, theirs.fading.h, rtol=1e-2, atol=2e-3)
    # The sum over subcarriers is a midpoint rule of the integral that the closed form has.
    band = count * spacing
    closed = channels.from_sionna(a, tau, cpu_hz=1e9, mean_power=True, bandwidth_hz=band)
    summed = channels.from_sionna(h=h, cpu_hz=1e9, mean_power=True)
    np.testing.assert_allclose(closed.gain_db, summed.gain_db, atol=0.1)
    # Lines of sight of 20 to 75 m at 3.5 GHz, with 4 dB of shadowing.
    assert ((closed.gain_db > -110) & (closed.gain_db < -50)).all()
    assert closed.draws(Stream(1), range(10)).h.shape == (10, 6, 4)


def test_normalised_channels_of_sionna_are_noted():
    a, tau, _, _ = street(batch=3, clients=6)
    from sionna.phy.channel import cir_to_ofdm_channel, subcarrier_frequencies

    h = cir_to_ofdm_channel(subcarrier_frequencies(32, 30e3), a, tau, normalize=True)
    with pytest.warns(channels.Note, match=r"mean of abs\(h\)\^2 is .*normalize=False"):
        network = channels.from_sionna(h=h, cpu_hz=1e9, mean_power=True, cell_of=[0, 0, 0, 1, 1, 1])
    np.testing.assert_allclose(network.gain_db, 0, atol=1e-4)
