"""The simulated Earth: what would be there, and what each sensor would record of it."""
