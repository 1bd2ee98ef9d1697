-- What consumers read, and nothing else of the outbox: commands and API keys stay between the services.
create publication bank_accounts_events for table accounts.outbox
  where (aggregatetype in ('accounts', 'clients', 'audit')) with (publish = 'insert');
