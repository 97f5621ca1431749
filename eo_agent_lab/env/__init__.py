"""The environment: one question as an episode, alone or as a Gymnasium environment."""
