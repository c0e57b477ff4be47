"""`viscoil render` and `viscoil gallery`: their options and what they print."""


def render() -> None:
    """Placeholder until the helper arrives."""


def gallery() -> None:
    """Placeholder until the helper arrives."""
