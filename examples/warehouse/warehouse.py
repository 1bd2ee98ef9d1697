"""Keeps the bank's entries as Parquet: `load` once, `follow` the events, and `prove` every night that they match the ledger.

pip install duckdb confluent-kafka psycopg[binary]. Settings: LEDGER_URL (a member of the ledger's reader role), KAFKA_BROKERS, TOPIC_PREFIX,
WAREHOUSE (a folder). What comes twice is harmless: an entry is known by its account and sequence.
"""
import json, os, sys, time
from pathlib import Path
import duckdb, psycopg
from confluent_kafka import Consumer, TopicPartition

folder = Path(os.environ.get("WAREHOUSE", "warehouse"))
entries, position = folder / "entries", folder / "position.json"
columns = "account_id, sequence, operation_id, transaction_id, direction, amount_minor, currency, created_at"
distinct = f"(select distinct on (account_id, sequence) * from '{entries}/*.parquet')"

def snapshot(query, file):
    """Writes the result of a query as CSV; returns the database's time of its snapshot in milliseconds since 1970."""
    with psycopg.connect(os.environ["LEDGER_URL"]) as db, open(folder / file, "wb") as out:
        db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        moment = db.execute("select (extract(epoch from clock_timestamp()) * 1000)::bigint").fetchone()[0]
        with db.cursor().copy(f"copy ({query}) to stdout (format csv, header)") as rows:
            for row in rows: out.write(row)
    return moment

def load():
    entries.mkdir(parents=True)
    moment = snapshot(f"select {columns} from ledger.v_entries", "entries.csv")
    duckdb.sql(f"copy (from '{folder}/entries.csv') to '{entries}/snapshot.parquet'")
    position.write_text(json.dumps({"moment": moment - 300_000}))  # the clocks of database and brokers may differ

def follow():
    """Reads from the stored position to the current end of the topic; the position is stored after the entries."""
    kafka = Consumer({"bootstrap.servers": os.environ["KAFKA_BROKERS"], "group.id": "warehouse", "enable.auto.commit": False})
    topic, at = os.environ.get("TOPIC_PREFIX", "") + "transactions", json.loads(position.read_text())
    partitions = kafka.list_topics(topic, timeout=30).topics[topic].partitions
    ends = {p: kafka.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1] for p in partitions}
    begins = {p.partition: p.offset for p in kafka.offsets_for_times([TopicPartition(topic, p, at.get("moment", 0)) for p in partitions], timeout=30)}
    next_offsets = {p: at.get(str(p), begins[p] if begins[p] >= 0 else ends[p]) for p in partitions}
    kafka.assign([TopicPartition(topic, p, offset) for p, offset in next_offsets.items()])
    found = []
    while any(next_offsets[p] < ends[p] for p in partitions):
        message = kafka.poll(30)
        if message is None or message.error(): raise SystemExit(f"the topic cannot be read: {message and message.error()}")
        next_offsets[message.partition()] = message.offset() + 1
        if dict(message.headers())["ce_type"] == b"corebanking.transaction.completed.v1":
            for entry in json.loads(message.value())["entries"]:  # amounts have all digits of their currency
                found.append({**entry, "amount_minor": int(entry["amount"].replace(".", ""))})
    kafka.close()
    if found:
        (folder / "found.json").write_text("\n".join(map(json.dumps, found)))
        duckdb.sql(f"copy (select {columns} from read_json('{folder}/found.json')) to '{entries}/{time.time_ns()}.parquet'")
    position.write_text(json.dumps(next_offsets))

def prove():
    """Takes a snapshot of the ledger's accounts, reads the events published until then, and compares both. Exit code 1: they differ."""
    snapshot("select account_id, balance_minor, last_sequence from ledger.v_accounts", "ledger.csv")
    for _ in range(12):  # an event may be published shortly after its entry
        follow()
        differing = duckdb.sql(f"""
            select account_id, balance_minor as ledger, warehouse, last_sequence as ledger_entries, entries from '{folder}/ledger.csv' left join (
                select account_id, count(*) as entries, sum(if(direction = 'credit', amount_minor, -amount_minor)) as warehouse
                from {distinct} join '{folder}/ledger.csv' using (account_id) where sequence <= last_sequence group by account_id) using (account_id)
            where balance_minor <> coalesce(warehouse, 0) or last_sequence <> coalesce(entries, 0)""").fetchall()
        if not differing: break
        time.sleep(5)
    for account in differing: print("differs (account, balance of the ledger and here, entries there and here):", *account)
    [(count,)] = duckdb.sql(f"select count(*) from '{folder}/ledger.csv'").fetchall()
    print(f"{count} accounts, {len(differing)} differ")
    sys.exit(1 if differing else 0)

if __name__ == "__main__": {"load": load, "follow": follow, "prove": prove}[sys.argv[1]]()
