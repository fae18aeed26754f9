"""The FAdamGC paper (Chen et al.): settings, learning-rate search, scripts, published results."""
