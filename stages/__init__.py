"""The consumers: validate, extract, normalize and persist."""
