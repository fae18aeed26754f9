"""Local training: batches, client rules, executors, evaluation."""
