"""The names of the files in the folder of a job."""

RECORDS, FRONTIER, JOB = "records.jsonl", "frontier.db", "job.json"
NEXT = "records.next"  # records without what is forgotten, until they take the place of the others
