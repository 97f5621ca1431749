"""Runs: policies played over tasks by many processes, into a log that survives a kill."""
