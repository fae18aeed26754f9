"""One model's server: its state, weights of clients, what it receives, merges and keeps."""
