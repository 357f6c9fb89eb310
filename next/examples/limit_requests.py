"""requests in threads, at the pace that each host allows: python examples/limit_requests.py URL…"""

import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import requests

from sanderling.limit import ThreadLimiter

limiter = ThreadLimiter(max_rps=20)


def fetch(url: str) -> None:
    with limiter.attempt(urlsplit(url).netloc) as attempt:
        response = requests.get(url, timeout=30)
        attempt.report(response.status_code, response.headers)
        print(response.status_code, len(response.content), url)


with ThreadPoolExecutor(16) as pool:
    list(pool.map(fetch, sys.argv[1:]))
