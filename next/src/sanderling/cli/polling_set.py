"""`sanderling polling set`: the settings of a run, listed, or changed while it runs."""

import asyncio

from sanderling.cli.context import Context
from sanderling.files import Exit
from sanderling.polling.options import SetOptions
from sanderling.polling.system import change_settings


def polling_set(options: SetOptions, context: Context) -> Exit:
    """Change settings, and list all of them."""
    for key, value in sorted(asyncio.run(change_settings(options.folder, options.values)).items()):
        context.print(f"{key} = {value}")
    return Exit.DONE
