"""Metrics over trajectories, with confidence intervals and the level of chance."""
