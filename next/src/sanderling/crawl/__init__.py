"""Jobs that people write, and pages, which are a job that is written already: one crawler for both.

Terms. A *job* says where to begin and what responses mean. A *page function* is given a `Page` whose URL fits its
pattern, a *reply function* any response; both yield records and `Request`s. A *request* is data: it is stored, and the
function that reads its response is stored with it by name. `work.py` is what a reader process does with a response;
`handler.py` what the crawl does with a request.
"""
