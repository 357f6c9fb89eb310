"""Ask the process in this container whether it is well: exit code 0 if it answers with a 200, 1 if not.

healthy.py [PORT [PATH]]; by default the metrics on port 9090. /health and /ready are those of an API.
"""

# ruff: noqa: INP001 - a script, copied into the image by itself
import http.client
import sys

PATIENCE = 8.0  # seconds; the probe itself is given ten


def main(port: str = "9090", path: str = "/metrics") -> int:
    """Say what is wrong, if anything is."""
    # Not urllib: it would ask the proxy of the environment.
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=PATIENCE)
    try:
        connection.request("GET", path)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        print(f"127.0.0.1:{port}{path}: {error or type(error).__name__}")  # noqa: T201 - it is what the probe shows
        return 1
    finally:
        connection.close()
    if status != http.HTTPStatus.OK:
        print(f"127.0.0.1:{port}{path}: status {status}, expected 200")  # noqa: T201 - the same
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
