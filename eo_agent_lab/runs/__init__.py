"""Playing policies over tasks, with a log that survives being killed at any instant."""
