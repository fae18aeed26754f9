"""Optimisation: a problem in, a Solution with a certificate out."""
