"""Block fading over antennas and subcarriers, antenna correlation and path loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked, is_complex, is_number
from channels.arrays import ComplexArray, FloatArray, IntArray
from channels.streams import Stream
from channels.validation import LEAST, MOST, number_of, shown

_ROWS = 512  # channels correlated per block; the block must fit in the cache


@runtime_checkable
class Fading(Protocol):
    """A fading model: any class with this method, e.g. a frozen dataclass with its settings.

    A client's channel must depend only on the stream, the index and the client's index. A round can
    then draw its participants' channels alone, with the same result as in a draw of all clients.
    ``stream.normals`` and ``stream.uniforms`` draw per client, and :func:`correlate` applies the
    correlation root per client. If a part of a channel is the same in all blocks, the model should
    also be a :class:`FadingByClient`.

    >>> import numpy as np
    >>> import channels
    >>> class NoFading:
    ...     # Every channel is that of its path loss
    ...     def draw(self, stream, index, clients, root):
    ...         white = np.ones((len(clients), len(root)), dtype=np.complex64)
    ...         return channels.correlate(white, root)
    >>> isinstance(NoFading(), channels.Fading)
    True
    """

    def draw(
        self, stream: Stream, index: int, clients: IntArray, root: ComplexArray
    ) -> ComplexArray:
        """Small-scale channels of block ``index`` of ``stream``, with mean power 1 per antenna.

        Args:
            stream: source of randomness; equal streams and indices give equal channels.
            index: the block, e.g. the global round.
            clients: [clients], client indices.
            root: L [antennas, antennas], a square root of the antenna correlation, R = L L^H.

        Returns:
            h [clients, antennas] complex64.
        """


@runtime_checkable
class FadingByClient(Fading, Protocol):
    """A fading model in which a part of a channel, e.g. a direction, stays the client's own."""

    def gain_by_client(self, root: ComplexArray) -> bool:
        """Whether the distribution of ||h||^2 depends on that part.

        Args:
            root: L [antennas, antennas], a square root of the antenna correlation.
        """


@runtime_checkable
class SelectiveFading(Fading, Protocol):
    """A fading model whose channels differ from subcarrier to subcarrier of the band.

    >>> import channels
    >>> isinstance(channels.DelayProfile(300e-9), channels.SelectiveFading)
    True
    """

    @property
    def subcarriers(self) -> int:
        """K, number of subcarriers, into which the band is divided evenly; 1 for a flat band."""

    def draw_band(
        self,
        stream: Stream,
        index: int,
        clients: IntArray,
        root: ComplexArray,
        bandwidth_hz: FloatArray,
    ) -> tuple[ComplexArray, FloatArray]:
        """Channels of block ``index`` over the whole band, see :func:`over_band`.

        Args:
            stream: source of randomness; equal streams and indices give equal channels.
            index: the block, e.g. the global round.
            clients: [clients], client indices.
            root: L [antennas, antennas], a square root of the antenna correlation, R = L L^H.
            bandwidth_hz: [clients], band of each client's cell.

        Returns:
            h [clients, antennas] complex64 with the mean power of the band, and the power of each
            subcarrier over that mean, [clients, subcarriers].
        """


@checked(complex_valued=("responses",))
def over_band(responses: ArrayLike) -> tuple[ComplexArray, FloatArray]:
    """The channels of a band, and its spectrum, of frequency responses.

    >>> import numpy as np
    >>> import channels
    >>> h, spectrum = channels.over_band(np.array([[[1.0, 3.0]], [[2.0j, 2.0j]]]))
    >>> (abs(h) ** 2).round(3).tolist(), spectrum.round(3).tolist()
    ([[5.0], [4.0]], [[0.2, 1.8], [1.0, 1.0]])

    Args:
        responses: [..., antennas, subcarriers] complex.

    Returns:
        h [..., antennas], the root of each antenna's mean power over the subcarriers, with the
        phase of the middle one; and the power of each subcarrier, summed over the antennas, over
        the mean of the subcarriers, [..., subcarriers].
    """
    responses = np.asarray(responses)
    if responses.ndim < 2 or not responses.shape[-1]:
        raise ValueError(
            f"responses has shape {responses.shape}: give [..., antennas, subcarriers]."
        )
    power = responses.real.astype(np.float64) ** 2 + responses.imag.astype(np.float64) ** 2
    mean = power.mean(-1)
    middle = responses[..., responses.shape[-1] // 2].astype(np.complex128)
    # A factor, and no new phase, so that equal subcarriers keep the bits of one.
    size = np.abs(middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        h = np.where(size > 0, middle * (np.sqrt(mean) / size), np.sqrt(mean))
    total, whole = power.sum(-2), mean.sum(-1)[..., None]
    return h, np.divide(total, whole, out=np.ones(total.shape), where=whole > 0)


def offsets(subcarriers: int) -> FloatArray:
    """Frequencies of the middles of subcarriers, relative to the carrier, over the band."""
    return np.asarray((np.arange(subcarriers) + 0.5) / subcarriers - 0.5)


@dataclass(frozen=True)
class Rayleigh:
    """Rayleigh fading: h_i ~ CN(0, R), independent over clients and blocks (HIST, VI-C: R = I).

    >>> import numpy as np
    >>> import channels
    >>> h = channels.Rayleigh().draw(channels.Stream(1), 0, np.arange(1000), np.eye(2))
    >>> h.shape, round(float((abs(h) ** 2).mean()), 1)
    ((1000, 2), 1.0)
    """

    def draw(
        self, stream: Stream, index: int, clients: IntArray, root: ComplexArray
    ) -> ComplexArray:
        """See :class:`Fading`."""
        white = stream.normals(index, clients, 2 * len(root)).view(np.complex64)  # CN(0, 2)
        return correlate(white, root * math.sqrt(0.5))


@dataclass(frozen=True)
class Rician:
    """Rician fading: a constant line of sight plus Rayleigh scattering (Tse & Viswanath, 2.4.2).

    h_i = sqrt(K/(K+1)) e^(j phi_i) s(theta_i) + sqrt(1/(K+1)) L g_i,  g_i ~ CN(0, I),

    with s(theta)_m = e^(j pi m sin theta), the response of a uniform linear array with spacing of
    half a wavelength. The angle theta_i ~ U(-90, 90) degrees is the client's direction; it depends
    on the stream but not on the index. The phase phi_i ~ U(0, 360) degrees changes over
    centimetres of movement, so it is drawn for each index. Antenna correlation acts only on the
    scattered part.

    >>> import numpy as np
    >>> import channels
    >>> h = channels.Rician(k_factor_db=10).draw(channels.Stream(1), 0, np.arange(1000), np.eye(2))
    >>> h.shape, round(float((abs(h) ** 2).mean()), 1)
    ((1000, 2), 1.0)

    Args:
        k_factor_db: K, power of the line of sight divided by that of the scattering, in dB; within
            [-100, 100].
    """

    k_factor_db: float = 6.0

    def __post_init__(self) -> None:
        if not is_number(self.k_factor_db) or is_complex(self.k_factor_db):
            raise TypeError(f"k_factor_db is {shown(self.k_factor_db)}: give a real number.")
        if not -100 <= self.k_factor_db <= 100:
            raise ValueError(
                f"k_factor_db is {self.k_factor_db}: give -100 to 100 dB, or use Rayleigh()."
            )

    def draw(
        self, stream: Stream, index: int, clients: IntArray, root: ComplexArray
    ) -> ComplexArray:
        """See :class:`Fading`."""
        phase = 2 * math.pi * stream.child("phase").uniforms(index, clients, 1)
        return self.with_sight(
            stream, clients, phase, Rayleigh().draw(stream, index, clients, root)
        )

    def with_sight(
        self, stream: Stream, clients: IntArray, phase: FloatArray, scattered: ComplexArray
    ) -> ComplexArray:
        """The channels of a line of sight and scattered paths.

        Args:
            stream: randomness of the directions.
            clients: [clients], client indices.
            phase: phi_i [clients, 1], in radians.
            scattered: L g_i [clients, antennas].

        Returns:
            h [clients, antennas] complex64.
        """
        k = 10 ** (self.k_factor_db / 10)
        angle = math.pi * (stream.child("angle").uniforms(0, clients, 1) - 0.5)
        turns = phase + math.pi * np.sin(angle) * np.arange(scattered.shape[1])
        sight = math.sqrt(k / (k + 1)) * np.exp(1j * turns)
        return np.asarray(sight + math.sqrt(1 / (k + 1)) * scattered, dtype=np.complex64)

    def gain_by_client(self, root: ComplexArray) -> bool:
        """See :class:`FadingByClient`: only correlated scattering has directions of its own."""
        return bool(root[~np.eye(len(root), dtype=np.bool_)].any())


@checked(complex_valued=("white", "root"))
def correlate(white: ArrayLike, root: ArrayLike) -> ComplexArray:
    """Multiply each client's g by L; like ``white @ root.T``, but rounded per client.

    The rounding of a matrix product depends on its number of rows. This function multiplies and
    adds single-precision numbers element by element, so a client's result does not depend on the
    other clients.

    >>> import channels
    >>> root = channels.correlation_root(2, 0.5)
    >>> channels.correlate([[1.0, 0.0], [0.0, 2.0]], root).real.astype(float).round(3).tolist()
    [[1.0, 0.5], [0.0, 1.732]]

    Args:
        white: g [clients, antennas], complex.
        root: L [antennas, antennas].

    Returns:
        [clients, antennas] complex64.
    """
    if np.ndim(white) != 2 or np.shape(root) != 2 * np.shape(white)[1:]:
        raise ValueError(
            f"white has shape {np.shape(white)} and root {np.shape(root)}: give [clients, antennas]"
            " and [antennas, antennas]."
        )
    samples = np.ascontiguousarray(white, dtype=np.complex64)
    parts = samples.view(np.float32).reshape(*samples.shape, 2)
    columns = np.asarray(root, dtype=np.complex64).T
    diagonal = columns.diagonal()
    if np.count_nonzero(columns) == np.count_nonzero(diagonal.real) and not diagonal.imag.any():
        return np.asarray((parts * diagonal.real[:, None]).view(np.complex64)[..., 0])
    out = np.empty_like(parts)
    firsts = (columns != 0).argmax(1).tolist()  # skip leading zeros: L is usually triangular
    for start in range(0, len(samples), _ROWS):
        some = np.ascontiguousarray(parts[start : start + _ROWS].transpose(1, 2, 0))
        total = np.zeros_like(some)  # [antennas, 2, rows]
        terms = [(columns.real, some)]
        if columns.imag.any():
            terms.append((columns.imag, np.stack([-some[:, 1], some[:, 0]], axis=1)))
        for factors, values in terms:
            for antenna, first in enumerate(firsts):
                total[first:] += factors[antenna, first:, None, None] * values[antenna]
        out[start : start + _ROWS] = total.transpose(2, 0, 1)
    return np.asarray(out.view(np.complex64)[..., 0])


@checked()
def exponential_correlation(antennas: int, rho: complex) -> ComplexArray:
    """Exponential antenna correlation: R_mn = rho^(m-n) for m >= n, and R Hermitian (Loyka 2001).

    >>> import channels
    >>> channels.exponential_correlation(2, 0.5).real.round(6).tolist()
    [[1.0, 0.5], [0.5, 1.0]]

    Args:
        antennas: M >= 1.
        rho: correlation of neighbouring antennas, real or complex, |rho| < 1.

    Returns:
        R [antennas, antennas] complex128.
    """
    root = correlation_root(antennas, rho)
    return root @ root.conj().T


def check_correlation(name: str, rho: complex) -> None:
    """Check the correlation of neighbouring antennas."""
    if not abs(rho) < 1:
        raise ValueError(f"{name} is {rho}: give a number of magnitude below 1.")


@checked()
def correlation_root(antennas: int, rho: complex) -> ComplexArray:
    """Cholesky factor L of :func:`exponential_correlation`, in closed form.

    The antennas form a first-order autoregression, h_m = rho h_(m-1) + sqrt(1-|rho|^2) g_m. The
    closed form of L is therefore exact even if R is numerically singular (|rho| close to 1).

    >>> import channels
    >>> root = channels.correlation_root(2, 0.5)
    >>> (root @ root.conj().T).real.round(6).tolist()
    [[1.0, 0.5], [0.5, 1.0]]

    Returns:
        L [antennas, antennas] complex128, lower triangular, L L^H = R.
    """
    antennas = number_of("antennas", antennas, most=10_000)
    check_correlation("rho", rho)
    steps = np.subtract.outer(np.arange(antennas), np.arange(antennas))
    root = np.tril(np.power(complex(rho), np.maximum(steps, 0)))
    root[:, 1:] *= math.sqrt(1 - abs(rho) ** 2)
    return root


@checked()
def path_loss_db(
    distance_m: ArrayLike,
    *,
    exponent: float = 3.76,
    reference_db: float = 15.3,
    reference_m: float = 1.0,
) -> FloatArray:
    """Log-distance path loss, reference_db + 10 exponent log10(distance_m / reference_m).

    The defaults describe an urban macro cell at 2 GHz, 128.1 + 37.6 log10(distance in km) (3GPP
    TR 36.942). A network's ``gain_db`` is the negative of this loss. A :class:`PathLoss` adds lines
    of sight and shadowing.

    >>> import channels
    >>> channels.path_loss_db([1.0, 100.0]).round(1).tolist()
    [15.3, 90.5]

    Args:
        distance_m: distances in metres, any shape; at least ``reference_m`` or one metre, whichever
            is smaller.
        exponent: path-loss exponent; 2 in free space.
        reference_db: loss at ``reference_m``, in dB.
        reference_m: reference distance in metres, > 0.

    Returns:
        Loss in dB, >= 0, with the shape of ``distance_m``.

    Raises:
        ValueError: a distance is not finite or too short, a parameter is not finite, or a loss is
            negative, which would be a gain.
    """
    distance = np.asarray(distance_m, dtype=np.float64)
    if not LEAST <= reference_m <= MOST:
        raise ValueError(f"reference_m is {reference_m}: give finite metres > 0.")
    for name, value in (("exponent", exponent), ("reference_db", reference_db)):
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value}: give a finite number.")
    shortest = min(reference_m, 1.0)
    bad = ~(np.isfinite(distance) & (distance >= shortest))
    if bad.any():
        raise ValueError(
            f"distance_m contains {distance[bad].flat[0]}: give finite metres >= {shortest:g}. "
            "A kilometre is 1000 metres."
        )
    loss = np.asarray(reference_db + 10 * exponent * np.log10(distance / reference_m))
    if (loss < 0).any():
        place = int(loss.argmin())
        raise ValueError(
            f"the path loss at {distance.flat[place]:g} metres is {loss.flat[place]:.4g} dB, a "
            f"gain: give metres, and as reference_db the loss at {reference_m:g} metres."
        )
    return loss
