"""How a command says that it cannot go on."""

INTERRUPTED = 130  # the exit code after Ctrl-C


class CommandError(Exception):
    """A command cannot go on, for a reason the user can act on: shown as a message, without a traceback."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code
