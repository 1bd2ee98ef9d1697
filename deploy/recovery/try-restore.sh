#!/usr/bin/env bash
# try-restore.sh BASE WAL [TIME]: restores a base backup (a folder of pg_basebackup) with the archived WAL in a folder, up to
# its end or to a time, in a temporary server on this machine, and checks its books; the bank and the backup are only read.
# PG_BIN: the folder of the programs of the backup's version of Postgres, if they are not in PATH; DATABASE: core_banking.
# The last line says how old the restored data is. Exit code 0: the books balance.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
base=$(cd "$1" && pwd) wal=$(cd "$2" && pwd) time="${3:-}"
export PATH="${PG_BIN:+$PG_BIN:}$PATH:$here/../../node_modules/.bin"
work=$(mktemp -d "${TMPDIR:-/tmp}/try-restore-XXXXXX")
# Postgres does not run as root, and in the namespace of another user it reads only files of this one.
as=()
stop() { [ ! -f "$work/data/postmaster.pid" ] || "${as[@]}" pg_ctl -D "$work/data" -m immediate -s stop || true; rm -rf "$work"; }
trap stop EXIT

cp -r "$base" "$work/data"
if [ "$(id -u)" = 0 ]; then
  as=(unshare --user --map-user=1000 --map-group=1000)
  cp -r "$wal" "$work/wal" && wal="$work/wal"
fi
chmod 700 "$work/data"
rm -f "$work/data/postmaster.pid" "$work/data/standby.signal"
touch "$work/data/recovery.signal"
port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })')
echo 'host all all 127.0.0.1/32 trust' > "$work/pg_hba.conf"
cat >> "$work/data/postgresql.auto.conf" <<END
restore_command = 'cp "$wal/%f" "%p"'
recovery_target_action = 'promote'
${time:+recovery_target_time = '$time'}
archive_mode = off
# Recovery needs at least those of the bank's server, which may have them from its command line.
max_connections = 1000
max_worker_processes = 64
max_wal_senders = 64
max_prepared_transactions = 64
max_locks_per_transaction = 256
ssl = off
hba_file = '$work/pg_hba.conf'
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
port = $port
END
"${as[@]}" pg_ctl -D "$work/data" -l "$work/log" -s -w -t 3600 start || { tail -n 20 "$work/log" >&2; exit 1; }
export DATABASE_URL="postgres://${OWNER:-core_banking}@127.0.0.1:$port/${DATABASE:-core_banking}"
status=0
node "$here/../../services/verify-books.ts" || status=$?
"${as[@]}" sed -n 's/.*last completed transaction was at log time/the last transaction is from/p' "$work/log" | tail -n 1
exit "$status"
