"""The local launcher: private services and processes for ``make run``, the tests and CI.

Standard library only: it must run on a machine that has nothing but Python, since it is what installs the rest.
"""
