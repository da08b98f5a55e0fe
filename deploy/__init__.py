"""How Docstage is started: by the local launcher, or by Compose."""
