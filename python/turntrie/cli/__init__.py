"""The command line."""


def main() -> int:
    """Runs the command line."""
    return 0
