"""`viscoil surface`: its options and what it prints."""


def surface() -> None:
    """Placeholder until the helper arrives."""
