"""Model providers: one internal format, translated at the edge. Knows no actor and no database."""
