"""The configuration of the embedded PostgreSQL, written anew at every start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Only names the socket's file; no port is opened.
PORT = 5432

#: The roles that the application may be, through the socket and its operating system user.
ROLES = ("postgres", "mira_app", "mira_engine")

#: Settings for a small machine shared with other work.
SETTINGS: Mapping[str, str] = {
    "shared_buffers": "128MB",
    "effective_cache_size": "1GB",
    "work_mem": "8MB",
    "maintenance_work_mem": "64MB",
    "max_wal_size": "512MB",
    "checkpoint_timeout": "10min",
    "random_page_cost": "1.1",
    "jit": "off",
    # Parallel workers would take the second core from the conversation, and their shared
    # memory does not fit into the 64 MB that containers give by default.
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    # Insert-mostly tables need vacuuming too, or index-only scans fall back to the heap.
    "autovacuum_vacuum_insert_scale_factor": "0.05",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
    # Errors, statements and details quote what people wrote: they go to the client alone. "log"
    # stands above "error" here: starts, ends, crashes and checkpoints are written down.
    "log_min_messages": "log",
    "log_statement": "none",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
}

#: For databases that are thrown away: a crash of the server loses nothing, one of the machine all.
NOT_DURABLE: Mapping[str, str] = {
    "fsync": "off",
    "full_page_writes": "off",
}


def postgresql_conf(max_connections: int, durable: bool) -> str:
    """Return postgresql.conf. `local.conf` beside it, if there is one, has the last word."""
    settings = {
        **SETTINGS,
        "max_connections": str(max_connections),
        **({} if durable else NOT_DURABLE),
    }
    lines = [f"{name} = '{value}'" for name, value in settings.items()]
    return "\n".join(
        [
            "# Written by MIRA at every start. Your own settings belong into local.conf.",
            *lines,
            "include_if_exists = 'local.conf'",
            "",
        ]
    )


def forced(socket_directory: str) -> Sequence[str]:
    """Return the command line settings that no file may override: who can reach the server."""
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": f'"{socket_directory}"',
        "unix_socket_permissions": "0700",
        "port": str(PORT),
        "logging_collector": "off",
        "log_destination": "stderr",
    }
    return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]


PG_HBA = "# Written by MIRA at every start.\nlocal all all peer map=mira\n"


def pg_ident_conf(user: str) -> str:
    """Return pg_ident.conf, by which the operating system's `user` may be each of ROLES."""
    lines = [f'mira "{user}" {role}' for role in ROLES]
    return "\n".join(["# Written by MIRA at every start.", *lines, ""])
