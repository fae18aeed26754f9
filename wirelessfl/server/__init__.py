"""One model's server: its state, and what is kept for each client."""
