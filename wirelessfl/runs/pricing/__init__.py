"""Design without training: what a plan costs."""
