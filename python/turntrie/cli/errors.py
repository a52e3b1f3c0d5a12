"""The one exception that a user's mistake becomes."""


class UsageError(Exception):
    """Something that the user can put right: said in one line, exit code 2."""


class RefusalError(UsageError):
    """The chat template itself refuses a conversation: transformers raises, so there is nothing to compare."""


def one_line(error: BaseException) -> str:
    """The first line of an exception's text, or its class if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(" :") if lines else type(error).__name__
