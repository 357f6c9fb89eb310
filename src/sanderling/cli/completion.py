"""The commands of `sanderling completion`, and their help."""

from cyclopts import App

app = App(
    name="completion",
    help="Let the shell complete commands and flags: bash, zsh and fish.",
    help_epilogue="Example:\n\n    sanderling completion install",
)
app.command(
    "sanderling.cli.completion_scripts:install",
    name="install",
    help="Write the script where the shell finds it, and tell the shell to load it.\n\n"
    "The shell is the one this is called from, unless one is named. A new shell has it. What was installed before is "
    "replaced.\n\n"
    "Exit code 0, 1 if it could not be written, 2 if the shell is not known.",
    help_epilogue="Example:\n\n    sanderling completion install",
)
app.command(
    "sanderling.cli.completion_scripts:show",
    name="show",
    help="Print the script, for a place of your own.\n\nExit code 0, 2 if the shell is not known.",
    help_epilogue="Example:\n\n    sanderling completion show zsh",
)
