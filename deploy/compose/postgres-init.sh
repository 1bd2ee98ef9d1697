#!/usr/bin/env bash
# Creates the role and database of the services' schemas together with the cluster, as `npm start` does.
set -euo pipefail
psql -v ON_ERROR_STOP=1 --username postgres --dbname postgres <<'SQL'
\set password `cat /run/secrets/postgres/owner_password`
create role core_banking login createrole createdb password :'password' in role pg_monitor, pg_signal_backend;
create database core_banking owner core_banking;
SQL
