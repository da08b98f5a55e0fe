"""The command line's client: it speaks HTTP like any other, and imports nothing of the server."""
