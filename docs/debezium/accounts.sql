-- What the relay gives to the connector: the events for consumers. Commands and API keys stay between the services.
create publication bank_accounts_events for table accounts.outbox_events with (publish = 'insert');
