"""Memory: what MIRA remembers, how it finds it again, and how it forgets."""
