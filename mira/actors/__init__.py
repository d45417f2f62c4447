"""The actors of MIRA, and the small engine under them."""
