-- What the relay gives to the connector: the events for consumers. Commands and API keys stay between the services.
create publication bank_ledger_events for table ledger.outbox_events with (publish = 'insert');
