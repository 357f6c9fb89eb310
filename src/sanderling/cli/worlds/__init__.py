"""The simulated worlds of `sanderling world`, and their help. Each is imported only when it is run."""

from cyclopts import App

app = App(
    name="world",
    help="Serve a simulated world on this machine, to try things against.",
    help_epilogue="Example: a web of three ordinary hosts and all the odd ones\n\n    sanderling world site --hosts 3",
)
app.command("sanderling.cli.worlds.webs:site", name="site", help="Serve a small web of simulated hosts, until Ctrl-C.")
app.command(
    "sanderling.cli.worlds.webs:pds",
    name="pds",
    help="Serve a fleet of simulated ATProto hosts, until Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling world pds --hosts 5 --repos 100",
)
app.command(
    "sanderling.cli.worlds.game:game",
    name="game",
    help="Serve a simulated game with ever-growing ids, until Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling world game --preset gap --speed 10",
)
app.command(
    "sanderling.cli.worlds.race:race",
    name="race",
    help="Serve a simulated race day, until Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling world race --preset day --speed 10",
)
app.command(
    "sanderling.cli.worlds.api:api",
    name="api",
    help="Serve a simulated API with lists, details, a log-in and a search, until Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling world api --posts 1000",
)
app.command(
    "sanderling.cli.worlds.social:social",
    name="social",
    help="Publish the batches of a simulated crawler, where `events consume` with the same flags takes them.\n\n"
    "Some messages come twice, and not quite in order. At the end it says what must be in the rows once all is "
    "consumed. The same flags publish the same events again, which then change nothing.\n\n"
    "Exit code 0, 1 if something was not to be had, 2 if it was not called as it should be, 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling world social --preset day --rate 50 --out example",
)
