"""The command line client: it speaks HTTP like any other client, and imports nothing of the server."""
