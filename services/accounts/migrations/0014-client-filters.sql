-- Up Migration

-- What GET /clients filters by. Written when a client is created or changed, and no posting touches them.

-- Texts that are equal but for case, in any script.
create function exact_key(value text) returns text language sql immutable strict parallel safe
  return casefold(normalize(value, nfc) collate "pg_unicode_fast");

-- The words of a name, without case and accents: those that are combining marks of Latin, Greek, Cyrillic, Hebrew and Arabic, and strokes.
create function name_words(name text) returns text[] language sql immutable strict parallel safe
  return array_remove(regexp_split_to_array(
    translate(
      regexp_replace(
        normalize(casefold(normalize(name, nfkd) collate "pg_unicode_fast"), nfkd),
        '[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]',
        '', 'g'),
      'øłđħŧı', 'oldhti') collate "pg_unicode_fast",
    '[^[:alnum:]]+'), '');

-- Each word of the text is the beginning of some word. Words have letters and digits alone, so that nothing in them needs an escape.
create function name_query(words text) returns tsquery language sql immutable strict parallel safe
  return (select string_agg('''' || word || ''':*', ' & ')::tsquery from unnest(name_words(words)) as word);

create index clients_by_email on clients (exact_key(email), created_at, client_id);
create index clients_by_registration_number on clients (exact_key(registration_number), created_at, client_id) where registration_number is not null;
create index clients_by_name_words on clients using gin (array_to_tsvector(name_words(coalesce(company_name, first_name || ' ' || last_name))));
