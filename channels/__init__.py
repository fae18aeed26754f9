"""What the air does: fading, link rates, multiple access. Needs NumPy alone."""
