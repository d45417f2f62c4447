"""What a fresh machine lacks: PostgreSQL and Valkey of its own, supervised."""
