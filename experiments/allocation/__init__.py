"""How far baselines of the literature are from certified optima of bands, energy and selection."""
