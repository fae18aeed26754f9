"""The RA-Fed paper (proof supplement, KDD '23): submodels sized to the clients' capacities."""
