"""Pictures and plots made from frames."""
