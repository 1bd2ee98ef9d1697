-- Several statements, a function body with semicolons, and a literal with braces: all of it runs as written.
alter table things add column note text;
create function refuse() returns trigger language plpgsql as $$
begin
  raise exception 'append-only: {%}', tg_op;
end $$;
create trigger append_only before update on things for each row execute function refuse();
insert into things (id, note) values (1, '{id} it''s');
