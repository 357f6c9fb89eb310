"""The tables of `events`, one step after another, as Alembic runs them; `analytics_migrate` is what drives it.

| revision | what it brings |
|---|---|
| 0001 | `post_analytics`, a row per project, platform and post |
| 0002 | what crawlers tell: job, batch and fetch of each post, posts without a project, `crawl_errors` |
| 0003 | what posts say, who wrote them, `post_comments` |
| 0004 | `processed_events`, `outbox`, and indexes for what people ask |
| 0005 | messages of events, so that they can be replayed, and which of them are |

Tricky bits:

- A revision that was released is never changed, nor are the words in `columns` that it is made of.
- All of them work with rows in the tables, upwards and downwards. What a column held is lost with the column.
- A post without a project is one of the project '' below 0002, where each must have one. That is no project's name, so
  that the way up finds these again.
"""
