create table things (id int primary key, made_at timestamptz not null default now());
