"""The RA-Fed paper (proof supplement, KDD '23): submodels by what clients can afford."""
