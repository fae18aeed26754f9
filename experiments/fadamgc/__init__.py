"""The FAdamGC paper (Chen et al.): settings, step-size search, scripts, published results."""
