"""Solids: signed distances, boundary samples, motion."""
