"""Prints each record of TOPICS as a line of JSON, as librdkafka reads them, until it is killed."""

import json
import os

from confluent_kafka import Consumer

consumer = Consumer(
    {
        "bootstrap.servers": os.environ["KAFKA_BROKERS"],
        "group.id": os.environ["GROUP_ID"],
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    }
)
consumer.subscribe(os.environ["TOPICS"].split(","))
while True:
    for record in consumer.consume(500, timeout=0.2):
        if record.error():
            raise SystemExit(str(record.error()))
        print(
            json.dumps(
                {
                    "place": f"{record.topic()}/{record.partition()}/{record.offset()}",
                    "key": record.key().decode(),
                    "headers": {name: value.decode() for name, value in record.headers()},
                    "value": record.value().decode(),
                }
            ),
            flush=True,
        )
