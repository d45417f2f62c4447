"""What the surfaces may ask of conversations: accept, follow, cancel, retry, confirm.

The one door that web, CLI and tests use. Accepting is durable before it returns; following a turn
never slows it.
"""
