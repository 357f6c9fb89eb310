"""Requests and responses: one client for everything that is sent."""

from sanderling.fetch.client import Client
from sanderling.fetch.messages import HttpRequest, HttpResponse
from sanderling.fetch.options import HostOptions, RequestOptions, limiter_for

__all__ = ["Client", "HostOptions", "HttpRequest", "HttpResponse", "RequestOptions", "limiter_for"]
