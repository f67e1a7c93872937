#!/bin/sh
# The image runs this once, on an empty data directory: create a user for Temporal that cannot read CodeHub's rows.
set -eu

psql --set ON_ERROR_STOP=1 --set "password=$TEMPORAL_POSTGRES_PASSWORD" \
  --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'END'
CREATE ROLE temporal LOGIN PASSWORD :'password';
CREATE DATABASE temporal OWNER temporal;
CREATE DATABASE temporal_visibility OWNER temporal;
REVOKE CONNECT ON DATABASE :"DBNAME" FROM PUBLIC;
END
