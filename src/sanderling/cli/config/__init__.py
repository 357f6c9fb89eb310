"""The commands about settings, and their help. Each is imported only when it is run."""

from cyclopts import App

app = App(
    name="config",
    help="See what is set, and where; and whether the file is as it should be.",
    help_epilogue="Example:\n\n    sanderling config show events consume",
)
app.command(
    "sanderling.cli.config.commands:show",
    name="show",
    help="Say what every setting is, and where that is from: a file and its line, a variable, or the default.\n\n"
    "Of one command or group, or of all. What is secret is not shown.\n\n"
    "Exit code 0, 2 if the file is not as it should be.",
    help_epilogue="Example:\n\n    sanderling config show events consume",
)
app.command(
    "sanderling.cli.config.commands:check",
    name="check",
    help="Check the file, and the variables of the environment that set something.\n\n"
    "Says all that is wrong, with file and line. Whichever command runs checks the file too.\n\n"
    "Exit code 0 if all is well, 2 if not.",
    help_epilogue="Example:\n\n    sanderling config check --config sanderling.toml",
)
ABOUT_INIT = {
    "help": "Write a sanderling.toml that has every setting, its meaning and its default, all of it commented out.\n\n"
    "Into this folder, or into --home, or as --config says.\n\n"
    "Exit code 0, 1 if it could not be written, 2 if there is one already.",
    "help_epilogue": "Example:\n\n    sanderling init --home /var/lib/sanderling",
}
