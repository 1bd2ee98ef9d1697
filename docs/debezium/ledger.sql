-- What consumers read, and nothing else of the outbox: commands and API keys stay between the services.
create publication bank_ledger_events for table ledger.outbox
  where (aggregatetype in ('transactions', 'transfers', 'balances')) with (publish = 'insert');
