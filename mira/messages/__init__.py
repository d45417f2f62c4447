"""Values that travel: immutable, typed, and knowing nothing of the rest of MIRA."""
