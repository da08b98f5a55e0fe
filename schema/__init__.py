"""What Docstage stores, says on the wire and allows: the vocabulary that every process shares."""
