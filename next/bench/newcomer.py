"""Ten tasks of a newcomer, in a plain wheel alone in an empty environment: do the commands do what was wanted?

The sites are those that `sanderling demo SYSTEM --serve` serves, and one of our own that asks for a password. A task
that does not end as it should has the value of minus one second.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bars import Bar, report

PROJECT = Path(__file__).parents[1]
MOST = 60.0  # seconds that a task may take
JOB = """from sanderling import Job

job = Job("shop", start="BASElist/0")


@job.page("/list/*")
def listing(page):
    yield from page.follow_all("a")


@job.page("/item/{number}")
def item(page, number):
    yield {"number": int(number), "price": page.css("p").text}
"""
MEMBERS = """import sys
from aiohttp import web

async def login(request):
    if request.method == "POST" and (await request.post()).get("password") == "tide":
        response = web.Response(text="in")
        response.set_cookie("session", "1")
        return response
    form = "<form method=post><input name=user><input name=password type=password></form>"
    return web.Response(text=form, content_type="text/html")

async def page(request):
    if request.cookies.get("session") != "1":
        raise web.HTTPFound("/login")
    return web.Response(text="<title>Members</title><p>For members only.</p>", content_type="text/html")

async def robots(_request):
    raise web.HTTPNotFound

app = web.Application()
app.router.add_get("/robots.txt", robots)
app.router.add_route("*", "/login", login)
app.router.add_get("/", page)
print("Serving members, at http://127.0.0.1:" + sys.argv[1] + "/ until", flush=True)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
"""
LOGIN = """[hosts."127.0.0.1:PORT".login]
url = "http://127.0.0.1:PORT/login"
fill = { user = "ann", password = "env:MEMBERS_PASSWORD" }
[hosts."127.0.0.1:PORT"]
plain-http = true
"""


class Newcomer:
    """Somebody with a wheel, an empty folder, and the documents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, PROJECT], check=True, stdout=-3)
        wheel = next(folder.glob("*.whl"))
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)]
        subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command that goes on."""
        command = [str(self.folder / "venv" / "bin" / "sanderling"), *words]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "MEMBERS_PASSWORD": "tide"}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=pipe, stderr=pipe, text=True)

    def type(self, *words: str) -> str:
        """What a command prints; it has to end with 0."""
        with self.start(*words) as command:
            out, said = command.communicate(timeout=MOST)
        if command.returncode:
            raise RuntimeError(f"{' '.join(words)} ended with {command.returncode}: {said.strip()}")
        return out

    def rows(self, name: str) -> list[dict[str, object]]:
        """What was collected."""
        return [json.loads(line) for line in self.type("export", name, "--to", "-").splitlines()]

    @contextmanager
    def served(self, command: subprocess.Popen[str]) -> Iterator[str]:
        """The address of an upstream."""
        try:
            said = command.stdout.readline() if command.stdout else ""
            yield re.findall(r"http://\S+/", said)[0]
        finally:
            command.kill()
            command.communicate()


def first_records(person: Newcomer, site: str) -> bool:
    """The first records of a site."""
    person.type("pages", "crawl", site, "--out", "first", "--private", "--max-pages", "10")
    return len(person.rows("first")) == 10


def a_part(person: Newcomer, site: str) -> bool:
    """Only a part of it."""
    person.type("pages", "crawl", site, "--only", "/list/**", "--out", "part", "--private", "--rps", "50")
    return len(person.rows("part")) == 11


def slower(person: Newcomer, site: str) -> bool:
    """Slower."""
    began = time.monotonic()
    person.type("pages", "crawl", site, "--out", "slow", "--private", "--rps", "1", "--max-pages", "5")
    return time.monotonic() - began >= 4


def resume(person: Newcomer, site: str) -> bool:
    """Resume tomorrow: it is killed, and the same command is typed again."""
    words = ("pages", "crawl", site, "--out", "resumed", "--private", "--rps", "50")
    with person.start(*words) as command:
        time.sleep(3)
        command.send_signal(signal.SIGKILL)
        command.communicate()
    person.type(*words)
    urls = [row["url"] for row in person.rows("resumed")]
    return len(urls) == len(set(urls)) == 211 and "nothing is missing" in person.type("verify", "resumed")


def why_slow(person: Newcomer, _site: str) -> bool:
    """Why is it slow?"""
    return "--rps 1" in person.type("why", "slow")


def to_csv(person: Newcomer, _site: str) -> bool:
    """Export to CSV."""
    person.type("export", "first", "--to", "first.csv", "--fields", "url", "--fields", "title")
    return (person.folder / "first.csv").read_text().startswith('"url","title"')


def log_in(person: Newcomer, _site: str) -> bool:
    """Log in."""
    port = "47653"
    (person.folder / "members.py").write_text(MEMBERS)
    (person.folder / "sanderling.toml").write_text(LOGIN.replace("PORT", port))
    server = subprocess.Popen(
        [str(person.python), "members.py", port], cwd=person.folder, stdout=subprocess.PIPE, text=True
    )
    try:
        with person.served(server) as members:
            time.sleep(1)
            person.type("pages", "crawl", members, "--out", "members", "--private")
    finally:
        (person.folder / "sanderling.toml").unlink()
    return any("For members only" in str(row.get("text")) for row in person.rows("members"))


def job_of_ten_lines(person: Newcomer, _site: str) -> bool:
    """A job of ten lines."""
    with person.served(person.start("demo", "jobs", "--serve")) as shop:
        (person.folder / "shop_job.py").write_text(JOB.replace("BASE", shop))
        person.type("run", "shop_job.py", "--try", "5", "--private")
        person.type("run", "shop_job.py", "--out", "shop", "--private", "--rps", "50")
    return len(person.rows("shop")) == 120


def delete_a_person(person: Newcomer, site: str) -> bool:
    """Delete a person, in what was exported too."""
    person.type("export", "first", "--to", "people.jsonl")
    gone = str(person.rows("first")[3]["url"])
    person.type("forget", "first", gone, "--export", "people.jsonl")
    files = (person.folder / "first" / "pages.jsonl", person.folder / "people.jsonl")
    return site in gone and not any(f'"url":"{gone}"' in file.read_text() for file in files)


def another_machine(person: Newcomer, _site: str) -> bool:
    """Move to another machine, and go on there."""
    shutil.move(person.folder / "slow", person.folder / "moved")
    person.type("pages", "crawl", "--out", "moved", "--rps", "50", "--max-pages", "15")
    return len(person.rows("moved")) == 15


TASKS: tuple[Callable[[Newcomer, str], bool], ...] = (
    first_records,
    a_part,
    slower,
    resume,
    why_slow,
    to_csv,
    log_in,
    job_of_ten_lines,
    delete_a_person,
    another_machine,
)


def main() -> int:
    """Try all."""
    with TemporaryDirectory() as place:
        began = time.monotonic()
        person = Newcomer(Path(place))
        bars = [Bar("installed, with what it needs: seconds", time.monotonic() - began)]
        with person.served(person.start("demo", "pages", "--serve")) as site:
            for task in TASKS:
                began = time.monotonic()
                try:
                    good = task(person, site)
                except (RuntimeError, subprocess.TimeoutExpired, OSError) as error:
                    print(f"{task.__name__}: {error}", file=sys.stderr)
                    good = False
                took = time.monotonic() - began if good else -1.0
                bars.append(Bar(f"{(task.__doc__ or '').split('.')[0].split(':')[0]}: seconds", took, 0.0, least=True))
    return report(bars)


if __name__ == "__main__":
    sys.exit(main())
