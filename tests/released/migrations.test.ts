import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { migrationFiles } from '#libs/postgres/migrate.ts';
import { migrations as accounts } from '#services/accounts/schema.ts';
import { migrations as ledger } from '#services/ledger/schema.ts';
import { migrations as webhooks } from '#services/webhooks/schema.ts';
import { PROJECT } from '../../tools/local/local-dir.ts';
import { readText, releases } from './recording.ts';

/** Migrations of a release never change, and later ones only add to what it uses. */
const read = (file: string) => readFileSync(join(PROJECT, file), 'utf8');
const sha256 = (text: string) => createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex');
const listed = releases.map((release) =>
  readText(release, 'migrations.sha256')
    .trim()
    .split('\n')
    .map((line) => line.split('  ') as [sum: string, file: string]),
);
const files = [...new Set([ledger, accounts, webhooks].flatMap(migrationFiles))].map((file) => relative(PROJECT, file));

it.each(releases.map((release, i) => [release, i] as const))(
  'no migration of release %s has changed: a change is a new file',
  (_, i) => {
    expect(listed[i]?.length).toBeGreaterThan(4);
    const changed = listed[i]?.filter(([sum, file]) => !existsSync(join(PROJECT, file)) || sha256(read(file)) !== sum);
    expect(changed?.map(([, file]) => file)).toEqual([]);
  },
);

/** What the release before would miss, or could not write any more. */
const contracting: [what: string, pattern: RegExp][] = [
  ['drops', /\bdrop\s+(table|view|type|function|schema|sequence|materialized|column)\b/],
  ['drops a column', /\balter\s+table\b[^;]*\bdrop\s+(?!constraint|column|default|not\b|expression|identity)\w/],
  ['renames', /\brename\s+(to|column|constraint|value)\b|\balter\s+table\b[^;]*\brename\b/],
  ['changes a type', /\balter\s+(column\s+)?\w+\s+(set\s+data\s+)?type\b/],
  ['sets not null', /\bset\s+not\s+null\b/],
  [
    'adds a column that must be given',
    /\badd\s+(column\s+)?(if\s+not\s+exists\s+)?(?!constraint|check|unique|primary|foreign)\w+\s+(?=[^,;]*\bnot\s+null\b)(?![^,;]*\b(default|generated)\b)/,
  ],
  ['adds a rule for existing columns', /\balter\s+table\b[^;]*\badd\s+(constraint|check|unique|primary|foreign)\b/],
  ['adds a unique index', /\bcreate\s+unique\s+index\b/],
];

/**
 * Returns what a migration does that only expands the schema if the release before no longer uses what it is about. A
 * statement below the comment `-- unused since <release>: why` is excepted, and so are tables that the file itself creates.
 */
function contractions(sql: string): string[] {
  const own = [...sql.matchAll(/\bcreate\s+table\s+(?:if\s+not\s+exists\s+)?(\w+)/gi)].map(([, name]) => name);
  return sql
    .replaceAll(/^-- unused since (\d+\.\d+\.\d+): \S.*$/gm, (_, since: string) =>
      releases.includes(since) ? ' unused_since ' : '',
    )
    .replaceAll(/--.*$/gm, '')
    .replaceAll(/\$(\w*)\$[\s\S]*?\$\1\$/g, "''")
    .toLowerCase()
    .split(';')
    .flatMap((statement) => {
      const table = /\b(?:alter\s+table(?:\s+only)?|on)\s+(\w+)/.exec(statement)?.[1];
      if (statement.includes(' unused_since ') || own.includes(table)) return [];
      const plain = statement.trim().replaceAll(/\s+/g, ' ');
      return contracting.flatMap(([what, pattern]) => (pattern.test(plain) ? [`${what}: ${plain}`] : []));
    });
}

const later = files.filter((file) => !listed.flat().some(([, known]) => known === file));

it('migrations after the last release only add to what it uses', () => {
  expect(later.flatMap((file) => contractions(read(file)).map((what) => `${file} ${what}`))).toEqual([]);
});

describe('the check of later migrations', () => {
  it.each([
    'alter table clients drop column address',
    'alter table clients drop address',
    'drop table notes',
    'drop view if exists v_entries',
    'drop function without_texts(jsonb)',
    'alter table clients rename column address to street',
    'alter table clients rename to customers',
    'alter table clients alter column address type varchar(10)',
    'alter table clients alter address set data type int',
    'alter table clients alter column address set not null',
    'alter table clients add column street text not null',
    'alter table clients add column a text not null default 1, add street text not null',
    'alter table clients add constraint short check (length(address) < 10)',
    'alter table clients add unique (email)',
    'create unique index one_mail on clients (email)',
    '-- unused since 0.0.1: no such release\ndrop table notes',
    '-- A comment; alter table is not what it says.\ndrop table notes',
  ])('finds: %s', (statement) => {
    expect(contractions(`create table t (id int);\n${statement};`)).toHaveLength(1);
  });

  it.each([
    'create table streets (id int primary key, name text not null)',
    'create table streets (id int); create unique index streets_id on streets (id); alter table streets add check (id > 0)',
    'alter table clients add column street text',
    "alter table clients add column street text not null default ''",
    'alter table clients drop constraint clients_check',
    'alter table clients alter column address drop not null',
    'create index clients_by_street on clients (street)',
    'create or replace function f() returns int language sql as $$ drop table notes; $$',
    '-- drop table notes\nalter table clients add column street text',
    `-- unused since ${releases.at(-1)}: nothing reads it\ndrop table notes`,
  ])('accepts: %s', (statement) => {
    expect(contractions(`${statement};`)).toEqual([]);
  });
});
