"""The HIST paper (Fang, Han and Brinton): settings, scripts, published results."""
