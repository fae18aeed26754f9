"""Worker processes: their executor, their main loop, the server that forks them, cores, memory."""
