"""Pure functions on arrays and text, each citing its source. No files, no agents."""
