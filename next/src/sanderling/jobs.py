"""What jobs are written with: `from sanderling.jobs import Answers, Cursor, OAuth2`."""

from sanderling.crawl.auth import ApiKey, Basic, Bearer, FormLogin, Login, OAuth2
from sanderling.crawl.job import Job, JobError
from sanderling.crawl.meaning import Answers
from sanderling.crawl.page import Page, Reply
from sanderling.crawl.paging import Cursor, LinkHeader, NextUrl, Offset, PageNumber, Single
from sanderling.crawl.request import Request

__all__ = [
    "Answers",
    "ApiKey",
    "Basic",
    "Bearer",
    "Cursor",
    "FormLogin",
    "Job",
    "JobError",
    "LinkHeader",
    "Login",
    "NextUrl",
    "OAuth2",
    "Offset",
    "Page",
    "PageNumber",
    "Reply",
    "Request",
    "Single",
]
