"""HTTP and WebSocket: input checked, answers shaped, nothing decided."""
