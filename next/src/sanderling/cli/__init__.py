"""The command line. A command is a row of `commands.py` or of a system, a class of options, and a function."""
