"""The simulation: plans of a round, the state that rounds change, and the one loop over events."""
