"""Beamformers as points on the sphere: normalisation, objectives, random starts."""

from __future__ import annotations

import torch


def unit_norm(a: torch.Tensor) -> torch.Tensor:
    """Beamformers [..., antennas] scaled to norm 1."""
    length: torch.Tensor = torch.linalg.vector_norm(a, dim=-1, keepdim=True)
    return a / length


def of_unit_norm(a: torch.Tensor) -> torch.Tensor:
    """A copy of beamformers [..., antennas] of norm 1; norms within 1e-9 of 1 stay unchanged."""
    length: torch.Tensor = torch.linalg.vector_norm(a, dim=-1, keepdim=True)
    return torch.where((length - 1).abs() < 1e-9, a, a / length)


def worst(h: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """Objective min_i |a^H h_i|^2 [problems, starts] of beamformers [problems, starts, antennas].

    NaN counts as 0.
    """
    return (a.conj() @ h.mT).abs().square().amin(-1).nan_to_num(0.0)


def best_of(h: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """The best [problems, antennas] of beamformers [problems, starts, antennas]."""
    best = worst(h, a).argmax(-1)
    return a[torch.arange(len(a), device=a.device), best]


def random_starts(h: torch.Tensor, starts: int, seed: int) -> torch.Tensor:
    """Beamformers [problems, starts, antennas], uniform on the sphere, the same for each problem.

    Args:
        h: channels [problems, clients, antennas].
        starts: number of starts.
        seed: seed of the draw.
    """
    generator = torch.Generator("cpu").manual_seed(seed)
    first = torch.randn(
        starts, h.shape[-1], dtype=torch.complex128, device="cpu", generator=generator
    )
    first = unit_norm(first).to(h.device)
    return first.expand(len(h), -1, -1).clone()
