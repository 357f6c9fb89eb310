#!/bin/sh
# Makes the secrets that compose.yaml mounts, in deploy/secrets or in the folder given. What is there already stays.
# As root, or with sudo: the password file of PostgreSQL must belong to the user of our image.
set -eu
umask 077
folder=${1:-"$(dirname "$0")/secrets"}
owner=10001 # of our image
mkdir -p "$folder"
cd "$folder"

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

for name in postgres_password rabbitmq_password s3_secret clickhouse_password grafana_password sanderling_token; do
    [ -e "$name" ] || random > "$name"
done
[ -e bungie_api_key ] || : > bungie_api_key

# The same in the words of those who want a file of their own.
[ -e pgpass ] || printf '*:*:*:sanderling:%s\n' "$(cat postgres_password)" > pgpass
[ -e rabbitmq.conf ] || printf 'default_user = sanderling\ndefault_pass = %s\n' "$(cat rabbitmq_password)" > rabbitmq.conf
[ -e s3.json ] || printf '%s\n' '{"identities": [{"name": "sanderling", "credentials": [{"accessKey": "sanderling",' \
    "\"secretKey\": \"$(cat s3_secret)\"}], \"actions\": [\"Admin\", \"Read\", \"Write\", \"List\", \"Tagging\"]}]}" > s3.json
[ -e clickhouse.xml ] || printf '%s\n' '<clickhouse><users><sanderling>' \
    "<password>$(cat clickhouse_password)</password>" '<networks><ip>::/0</ip></networks>' \
    '<profile>default</profile><quota>default</quota>' '</sanderling></users></clickhouse>' > clickhouse.xml

# The folder is closed to everybody else; within a container, each file is read by whoever runs there.
chmod 700 .
chmod 444 ./*
# Clients of PostgreSQL ignore a password file that others may read.
chmod 400 pgpass
if ! chown "$owner" pgpass 2>/dev/null; then
    echo "make-secrets: pgpass must belong to user $owner, and only root can give it away: run this again with sudo" >&2
    exit 1
fi
[ -s bungie_api_key ] || echo "make-secrets: put the key of the API that sequence follows into $(pwd)/bungie_api_key" >&2
