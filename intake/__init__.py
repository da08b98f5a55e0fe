"""The HTTP API: documents in, job ids out, and what became of them; and the client that speaks to it."""
