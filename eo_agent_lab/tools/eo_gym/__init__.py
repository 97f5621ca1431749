"""EO-Gym's tools by their published names (Tables 11 and 12 of the paper); one module a family."""
