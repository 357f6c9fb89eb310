"""Follow an API of ever-growing ids: stay at its head, skip its holes, lose nothing.

Terms. *Head*: the newest id that exists. *Lag*: how old a record was when we got it. *Main lane*: ids in their order.
*Missed*: ids that the main lane gave up; they are asked again, ever more rarely. *Probe*: a question that only asks
whether an id exists; it is never counted. *Gap*: ids that will never exist, with live ones behind. *Period*: the time
between two decisions about how many workers there are. *Cursor*: every id below it has a fate that is on disk.
"""
