"""What people and programs touch over HTTP, in one house: its own rules at the door, and a table of routes inside.

Terms. A *route* is a method, a path and the function that answers (`routes`); what it takes and gives are its types,
and from these come both the checking (`parsing`) and the description for others (`openapi`). A *problem* is an error as
JSON (`problems`). A *token* lets its holder in; without one the house serves this machine alone (`access`). A *stream*
is an answer that goes on for as long as the client reads it (`stream`). `app` puts this together, `serve` opens the
door. What is special about a system is in files of its name: `polling_api` and those beside it.

Tricky bits:

- A page in a browser can send requests to this machine, and by DNS rebinding even read the answers. So without a token
  the name in the Host header counts as well, and so does the site that a request comes from.
- Ids are arbitrary text, so `%2F` is a character of an id and not a step of the path. Paths are split before they are
  decoded.
- A stream says only of what was sent that it was sent: its position moves after the bytes have left.
"""
