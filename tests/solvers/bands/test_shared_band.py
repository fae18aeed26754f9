"""``bandwidth_hz`` is the band that clients share: one value per client is not a batch."""

import numpy as np
import pytest

from solvers import (
    allocate_bands_in_time,
    allocate_bandwidth,
    allocate_energy,
    optimize_masks_and_bands,
    optimize_masks_and_energy,
    optimize_widths_and_bands,
    select_clients,
)

BITS, SNR, BANDS = np.full(3, 1e5), np.array([1e6, 2e6, 3e6]), np.array([1e6, 2e6, 4e6])
LIMITS = {"max_power_watts": 0.1, "max_cpu_hz": 2e9, "kappa": 1e-28, "deadline_seconds": 9.0}
CALLS = {
    "allocate_bandwidth": lambda bits, band: allocate_bandwidth(bits, 0.1, SNR, band),
    "allocate_bands_in_time": lambda bits, band: allocate_bands_in_time(bits, 0.1, SNR, band),
    "select_clients": lambda bits, band: select_clients(bits, 0.1, SNR, band, count=2),
    "allocate_energy": lambda bits, band: allocate_energy(bits, 1e8, 10 * SNR, band, **LIMITS),
    "widths": lambda bits, band: optimize_widths_and_bands(bits, 0.1, SNR, band, 9.0),
    "masks": lambda bits, band: optimize_masks_and_bands(bits, 0.1, SNR * [[1], [1]], band, 4),
    "masks_and_energy": lambda bits, band: optimize_masks_and_energy(
        bits, 1e8, 10 * SNR * [[1], [1]], band, 4, **LIMITS
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_band_per_client_is_refused(name):
    cells = (2, 1) if name.startswith("masks") else ()
    wanted = (
        r"^bandwidth_hz has shape .*, one value per client, .* (bits|snr_hz|gain_per_noise)\[None\]"
    )
    with pytest.raises(ValueError, match=wanted):
        CALLS[name](BITS, np.tile(BANDS, cells))


@pytest.mark.parametrize("name", [name for name in CALLS if not name.startswith("masks")])
def test_as_many_bands_as_clients_are_a_batch_if_the_clients_have_its_axis(name):
    many = CALLS[name](BITS[None], BANDS).objective
    np.testing.assert_array_equal(many, [CALLS[name](BITS, band).objective for band in BANDS])
