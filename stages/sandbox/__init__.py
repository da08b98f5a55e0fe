"""Killable children in which documents are parsed, seen from the parent's side."""
