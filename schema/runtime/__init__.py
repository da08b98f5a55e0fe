"""How a process runs: settings, clock, logs, metrics, the object store, the broker and the life cycle."""
