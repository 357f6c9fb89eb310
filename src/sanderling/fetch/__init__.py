"""Ask the network, and say in one word how it went.

Terms. *Guard*: what decides, before a byte is sent, whether an address may be called. *Refused*: it may not; our word,
never the host's. *Reply*: what came back. *Outcome*: what that means. *Soon*: within seconds, in this very fetch.

The road: `guard.check_url` → resolve → `guard.check_addresses` → the request → `classify` → Outcome → Feedback.

Tricky bits. A url is checked again at each redirect, and the addresses that were checked are the ones to connect to:
a name that is resolved a second time may give others. An HTTP client does not resolve a host that is an address, so
`check_url` judges that one itself. Foreign exceptions end in `classify` and are never looked at elsewhere.
"""
