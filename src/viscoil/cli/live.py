"""`viscoil studio`: its options and what it prints."""


def studio() -> None:
    """Placeholder until the helper arrives."""
