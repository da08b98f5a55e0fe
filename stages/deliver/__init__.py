"""Telling endpoints of jobs that ended: a process of its own, the only one that calls out to addresses it is given."""
