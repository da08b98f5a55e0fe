"""Pure decisions: states, errors, retries. Nothing in here does I/O or reads a clock."""
