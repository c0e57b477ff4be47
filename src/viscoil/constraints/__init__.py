"""Constraint projections, one per file: stateless functions with their formula."""
