-- Which request a command came from first: its message may be delivered again after a crash, and that is no repeat by the
-- caller (who, for an API key, would otherwise never be shown the secret).
alter table commands add column correlation_id text;
