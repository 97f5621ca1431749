"""Published values, tables and figures: every float of every paper, and where it comes from."""
