"""Jobs: crawls that users write in a file of their own. Here are the kinds of things that a job declares."""

from sanderling.apis.answers import Answers
from sanderling.apis.auth import ApiKey, Basic, Bearer, Digest, FormLogin, Login, OAuth2
from sanderling.apis.paging import Cursor, LinkHeader, NextUrl, Offset, PageNumber, Single

__all__ = [
    "Answers",
    "ApiKey",
    "Basic",
    "Bearer",
    "Cursor",
    "Digest",
    "FormLogin",
    "LinkHeader",
    "Login",
    "NextUrl",
    "OAuth2",
    "Offset",
    "PageNumber",
    "Single",
]
