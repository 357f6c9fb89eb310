"""Exit code 0 if the process in this container answers a scrape: healthy.py [PORT [PATH]]."""

# ruff: noqa: T201 - a script that is copied into the image, and prints what is wrong
import http.client
import sys


def main(port: str = "9090", path: str = "/metrics") -> int:
    """0 if a 200 comes."""
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=8)  # no proxy of the environment
    try:
        connection.request("GET", path)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        print(f"127.0.0.1:{port}{path}: {error or type(error).__name__}")
        return 1
    finally:
        connection.close()
    if status != 200:
        print(f"127.0.0.1:{port}{path}: status {status}, expected 200")
    return int(status != 200)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
