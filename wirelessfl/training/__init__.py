"""Local training: batches, the client rule's view, executors, evaluation."""
