"""The database's history, one transaction a step."""
