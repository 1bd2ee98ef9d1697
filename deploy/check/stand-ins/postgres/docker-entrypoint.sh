#!/usr/bin/env bash
# The parts of the official image's entrypoint that this project uses: it creates the cluster at the first start, evaluates
# the variables POSTGRES_*, and runs the scripts of /docker-entrypoint-initdb.d with a server that listens only on the
# socket.
set -euo pipefail
[ "${1:-}" = postgres ] || exec "$@"
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA"
  chown -R postgres: "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --init-groups "${BASH_SOURCE[0]}" "$@"
fi
if ! [ -s "$PGDATA/PG_VERSION" ]; then
  user=${POSTGRES_USER:-postgres}
  password=${POSTGRES_PASSWORD:-$(cat "${POSTGRES_PASSWORD_FILE:?POSTGRES_PASSWORD is not set}")}
  # shellcheck disable=SC2086
  initdb -D "$PGDATA" --username="$user" --pwfile=<(printf '%s\n' "$password") ${POSTGRES_INITDB_ARGS:-}
  printf '\nhost all all all scram-sha-256\n' >> "$PGDATA/pg_hba.conf"
  pg_ctl -D "$PGDATA" -w start -o "-c listen_addresses='' -c unix_socket_directories=/var/run/postgresql"
  export PGHOST=/var/run/postgresql PGUSER=$user
  [ "${POSTGRES_DB:-$user}" = postgres ] || psql -v ON_ERROR_STOP=1 -d postgres -c "create database \"${POSTGRES_DB:-$user}\""
  for script in /docker-entrypoint-initdb.d/*; do
    case "$script" in
      *.sh) bash "$script" ;;
      *.sql) psql -v ON_ERROR_STOP=1 -d "${POSTGRES_DB:-$user}" -f "$script" ;;
    esac
  done
  pg_ctl -D "$PGDATA" -m fast -w stop
fi
shift
exec postgres -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql "$@"
