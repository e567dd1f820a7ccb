"""The base of every error that a person may meet and can act on. What does not derive from it is a bug."""

from tallystick.model.verdict import ExitCode


class TallystickError(Exception):
    """Its message is one sentence for an operator: what was found, what was expected, what to do.

    The command line prints the message and ends with the exit code; a bug keeps its traceback and ends with another.
    """

    exit_code: ExitCode = ExitCode.REFUSED
    retryable: bool = False
    """Might the same call succeed when it is made again, though nobody changes anything meanwhile?"""
