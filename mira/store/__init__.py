"""Postgres and Valkey: named SQL, one file per owner. The only place that talks to either."""
