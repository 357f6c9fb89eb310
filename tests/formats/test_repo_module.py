"""What the C parser promises besides the right result: hashes, floats, buffers, threads, memory."""

import hashlib
import locale
import math
import mmap
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.formats import repo_python
from sanderling.formats.car import write_car
from sanderling.formats.cid import DAG_CBOR, Cid
from sanderling.formats.parsed import Kind, Limits, RepoError
from sanderling.worlds.pds_repos import make_commit, make_repo, mix

native = pytest.importorskip(
    "sanderling.formats._repo", reason="the C part was not built: no compiler when the package was installed"
)
DID = "did:plc:abcdefghijklmnopqrstuvwx"
SOUND = make_repo(Random(1), DID, mix(60))
CAR = "car"


@settings(max_examples=500)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_written_as_python_does(value: float) -> None:
    assert native.float_text(value) == repr(value)


def test_floats_where_their_density_changes() -> None:
    """Just above a power of two they are half as dense as below, and the nearest short text may be another number."""
    for exponent in range(-1074, 1024):
        power = 2.0**exponent
        for value in (power, math.nextafter(power, 0), math.nextafter(power, math.inf), -power):
            assert native.float_text(value) == repr(value)
    for exponent in range(-323, 309):
        assert native.float_text(float(f"1e{exponent}")) == repr(float(f"1e{exponent}"))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_has_no_text_for_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="expected a finite float"):
        native.float_text(value)


@contextmanager
def decimal_comma() -> Iterator[None]:
    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8", "de_DE", "C"):
        try:
            locale.setlocale(locale.LC_NUMERIC, name)
            break
        except locale.Error:
            continue
    try:
        if locale.localeconv()["decimal_point"] != ",":
            pytest.skip("no locale with a decimal comma is installed")
        yield
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


def test_floats_are_written_alike_in_any_locale() -> None:
    with decimal_comma():
        for value in (0.1, -1234.5678, 1e-300, 2.0**-44):
            assert native.float_text(value) == repr(value)


@pytest.mark.parametrize("name", native.IMPLEMENTATIONS)
def test_every_way_to_hash_is_right(name: str) -> None:
    assert native.sha256(b"abc", name).hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    data = Random(1).randbytes(5000)
    for size in [*range(300), 4095, 4096, 5000]:
        assert native.sha256(data[:size], name) == hashlib.sha256(data[:size]).digest()


def test_the_fastest_way_to_hash_is_taken_and_the_portable_is_always_there() -> None:
    assert native.IMPLEMENTATIONS[0] == native.IMPLEMENTATION
    assert native.IMPLEMENTATIONS[-1] == "portable"
    with pytest.raises(ValueError, match="no implementation md5 here"):
        native.sha256(b"", "md5")


def test_any_contiguous_buffer_will_do(tmp_path: Path) -> None:
    expected = native.parse_repo(SOUND)
    (tmp_path / CAR).write_bytes(SOUND)

    assert native.parse_repo(bytearray(SOUND)) == expected
    assert native.parse_repo(memoryview(b"x" + SOUND)[1:]) == expected
    with (
        (tmp_path / CAR).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
    ):
        assert native.parse_repo(mapped) == expected


def test_what_it_is_not_meant_for_is_refused() -> None:
    for wrong in ("text", None, [SOUND]):
        with pytest.raises(TypeError):
            native.parse_repo(wrong)
    with pytest.raises(BufferError):
        native.parse_repo(memoryview(SOUND)[::2])
    for cids in ("drop", "strip\0", "\udc80", None, b"strip"):
        with pytest.raises(ValueError, match="'strip' or 'keep'"):
            native.parse_repo(SOUND, cids=cids)
    with pytest.raises(TypeError, match="expected Limits"):
        native.parse_repo(SOUND, limits=100)
    with pytest.raises(TypeError):
        native.parse_repo(SOUND, True)  # noqa: FBT003 - the point


def test_many_threads_may_parse_at_once() -> None:
    cars = [make_repo(Random(number), f"did:plc:{number}", mix(50 + number)) for number in range(4)]
    expected = [repo_python.parse_repo(car) for car in cars]
    wrong: list[int] = []

    def parse(number: int) -> None:
        wrong.extend(number for _ in range(100) if native.parse_repo(cars[number]) != expected[number])

    threads = [threading.Thread(target=parse, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


def test_others_run_meanwhile() -> None:
    """No thread is asked to give way here, so the other gets its turn only if the parser lets go by itself."""
    car = make_repo(Random(1), DID, mix(1000))
    go, ran = threading.Event(), threading.Event()

    def wait_and_run() -> None:
        go.wait()
        ran.set()

    other = threading.Thread(target=wait_and_run)
    other.start()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        go.set()
        for _ in range(2000):
            native.parse_repo(car)
            if ran.is_set():
                break
        gave_way = ran.is_set()
    finally:
        sys.setswitchinterval(before)
        other.join()

    assert gave_way


def test_bytes_that_change_meanwhile_do_no_harm() -> None:
    car = bytearray(SOUND)
    stop = threading.Event()
    rng = Random(1)

    def change() -> None:
        while not stop.is_set():
            at = rng.randrange(len(car))
            car[at] ^= 1 << rng.randrange(8)
            car[at] = SOUND[at]

    other = threading.Thread(target=change)
    other.start()
    try:
        for _ in range(2000):
            with suppress(RepoError, UnicodeDecodeError):
                native.parse_repo(car, verify=False)
    finally:
        stop.set()
        other.join()

    assert native.parse_repo(car) == native.parse_repo(SOUND)


PEAK = """
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
repo = _repo.parse_repo(car)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
NO_MEMORY = """
mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + 2**19, resource.RLIM_INFINITY))
try:
    _repo.parse_repo(car)
except MemoryError:
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(_repo.parse_repo(car).stats.records)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CAR of 10,000 records, some 4 MB."""
    path = tmp_path_factory.mktemp("large") / CAR
    path.write_bytes(make_repo(Random(1), DID, mix(10_000)))
    return path


def alone(script: str, large: Path) -> int:
    """What a process of its own says that has loaded `large` as `car`."""
    opening = "import resource, sys\nfrom sanderling.formats import _repo\ncar = open(sys.argv[1], 'rb').read()\n"
    arguments = [sys.executable, "-c", opening + script, str(large)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are counted in other units elsewhere")
def test_memory_stays_below_four_times_the_car(large: Path) -> None:
    assert alone(PEAK, large) <= 3 * large.stat().st_size


@pytest.mark.skipif(sys.platform != "linux", reason="memory is not bounded so elsewhere")
def test_without_memory_there_is_an_error_and_no_harm(large: Path) -> None:
    assert alone(NO_MEMORY, large) == 10_000


COLLIDING = """
import sys
from sanderling.formats import _repo, parsed
place = int(sys.argv[1])
before, after = b"\\x24\\x01\\x55\\x12\\x20" + bytes(place), bytes(28 - place)
car = sys.stdin.buffer.read() + b"".join(before + number.to_bytes(4) + after for number in range(300_000))
try:
    _repo.parse_repo(car, verify=False)
except parsed.RepoError as error:
    print(error.kind)
"""


@pytest.mark.parametrize("place", [0, 8, 16, 24])
def test_cids_made_to_collide_do_not(place: int) -> None:
    """A table that looked at a part of them would have all in one slot, and take minutes instead of milliseconds."""
    arguments = [sys.executable, "-c", COLLIDING, str(place)]
    done = subprocess.run(arguments, input=write_car([Cid.of(b"")], []), capture_output=True, timeout=300, check=True)  # noqa: S603 - ourselves

    assert done.stdout.decode().strip() == Kind.COMMIT_MISSING


def test_cids_that_share_a_hash_are_told_apart() -> None:
    """The table keeps 31 bits of a hash; among 150,000 CIDs some five pairs have the same."""
    rng = Random(1)
    count = 150_000
    cids = [DAG_CBOR + rng.randbytes(32) for _ in range(count)]
    entries = b"".join(
        b"\xa4akK" + f"a/{number:09}".encode() + b"ap\0at\xf6av\xd8\x2a\x58\x25\0" + cid
        for number, cid in enumerate(cids)
    )
    node = b"\xa2ae\x9a" + count.to_bytes(4) + entries + b"al\xf6"
    commit = make_commit(Random(1), DID, Cid.of(node))
    blocks = [(Cid(cid), b"\x1b" + (2**40 + number).to_bytes(8)) for number, cid in enumerate(cids)]
    car = write_car([Cid.of(commit)], [(Cid.of(commit), commit), (Cid.of(node), node), *blocks])

    repo = native.parse_repo(car, verify=False, limits=Limits(block=2**24))

    (collection,) = repo.collections
    expected = ((f"{number:09}".encode(), str(2**40 + number).encode()) for number in range(count))
    assert collection.data == b"".join(b"\x09\0" + rkey + b"\x0d\0\0\0" + json for rkey, json in expected)
