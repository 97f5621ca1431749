"""Questions and their generators, reference answers, trajectories, and the judging of an answer."""
