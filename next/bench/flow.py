"""How much of our code runs until a crawl begins: from `main` to the loop, for `sanderling pages crawl URL`.

Counted are functions and methods that were called, and the files that they are in. What only runs while a module is
imported (the options of a class, tables) does not count, nor do comprehensions and lambdas, which stand where they are
read. `--list` prints them in the order of their first call.
"""

import argparse
import json
import subprocess
import sys
import tempfile

from bars import Bar, report

TRACE = """
import json, os, sys, threading
sys.argv = ["sanderling", "pages", "crawl", "http://127.0.0.1:9/", "--private", "--quiet", "--out", sys.argv[1]]
seen, importing = {}, {}
def note(frame, event, _argument):
    code, me = frame.f_code, threading.get_ident()
    if code.co_name == "<module>" and event in ("call", "return"):
        importing[me] = importing.get(me, 0) + (1 if event == "call" else -1)
    elif event == "call" and "/sanderling/" in code.co_filename:
        is_function = code.co_flags & 2 and not code.co_name.startswith("<")  # CO_NEWLOCALS: no body of a class
        if is_function and not importing.get(me):
            seen.setdefault((code.co_filename.rpartition("/sanderling/")[2], code.co_qualname))
        if code.co_filename.endswith("engine/loop.py") and code.co_name == "run":
            print(json.dumps(list(seen)), flush=True)
            os._exit(0)
from sanderling.cli.main import main
threading.setprofile(note)
sys.setprofile(note)
main()
"""


def flow() -> list[tuple[str, str]]:
    """File and name of each function of ours, in the order of its first call."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-c", TRACE, f"{folder}/out"]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
    if not ran.stdout:
        raise SystemExit(f"the loop did not begin:\n{ran.stderr[-2000:]}")
    return [(file, name) for file, name in json.loads(ran.stdout)]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    found = flow()
    if given.list:
        print("\n".join(f"{file}: {name}" for file, name in found))
    functions, files = len(found), len({file for file, _ in found})
    return report([Bar("functions of ours from main to the loop", functions, 130), Bar("files of ours", files, 40)])


if __name__ == "__main__":
    sys.exit(main())
