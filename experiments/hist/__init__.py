"""The HIST paper (Fang, Han and Brinton): settings, scripts, what was reported."""
