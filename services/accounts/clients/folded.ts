import type { Logger } from 'pino';
import type { Queries } from '#libs/postgres/pool.ts';
import { foldCase, foldingVersion, foldWords, spellings } from '#libs/service/folding.ts';
import type { ClientRow } from './client-store.ts';

/** The columns of a client by which it is found. Whatever stores a client stores them with it. */

type Searched = Pick<ClientRow, 'first_name' | 'last_name' | 'company_name' | 'registration_number' | 'email'>;

export const foldedColumns = 'folded_name, folded_last_name, folded_words, folded_email, folded_registration, folding';

/** Longer words fit neither an index nor a lexeme. */
const cut = (text: string, length: number): string =>
  text.length <= length ? text : [...text].slice(0, length).join('');
const longestWord = 200;
const longestKey = 100;

type Words = ReturnType<typeof foldWords>;

/** Written as one word, as Desouza for De Souza. */
const joined = (words: Words): string => words.map(({ whole }) => whole).join('');
const everyWord = (words: Words): string[] => words.flatMap(({ whole, parts }) => [whole, ...parts]);
const key = (words: Words): string | null => cut(words.map(({ whole }) => whole).join(' '), longestKey) || null;

/** Returns the beginning of a name as it is stored, or null if it has no words. */
export const nameKey = (name: string): string | null => key(foldWords(name));

/** Words with = are only found as a whole: the beginning of Desouza or of Oersted (Ørsted) may be that of another word. */
export function foldClient({ first_name, last_name, company_name, registration_number, email }: Searched) {
  const fields = [first_name, last_name, company_name].filter((field) => field !== null);
  const spelled = fields.map((field) => spellings(field).map(foldWords));
  const nth = (i: number): Words[] => spelled.map((each) => each[i] ?? each[0] ?? []);
  const [name, other] = [nth(0), nth(1)];
  const known = new Set(everyWord(name.flat()));
  const wholes = [name, other].flatMap((words) => [...words, words.flat(), words.toReversed().flat()].map(joined));
  const wholly = [...wholes, ...everyWord(other.flat())].filter((word) => word !== '' && !known.has(word));
  return {
    folded_name: key(name.flat()),
    folded_last_name: last_name === null ? null : key(name.toReversed().flat()),
    folded_words: [...known, ...new Set(wholly.map((word) => `=${word}`))].map((word) => cut(word, longestWord)),
    folded_email: foldCase(email),
    folded_registration: registration_number === null ? null : foldCase(registration_number),
    folding: foldingVersion,
  };
}

const quoted = (lexeme: string): string => `'${cut(lexeme, longestWord).replace(/['\\]/g, '$&$&')}'`;

/**
 * Returns the tsquery for names of which every word of `q` begins a word, in one of its spellings and written together
 * or apart; null if `q` has no word.
 */
export function nameQuery(q: string): string | null {
  const queries = spellings(q).flatMap((spelled) => {
    const words = foldWords(spelled);
    if (words.length === 0) return [];
    const each = words.map(({ whole, parts }) => {
      const inParts = parts.length > 1 ? ` | ${parts.map((part) => `${quoted(part)}:*`).join(' & ')}` : '';
      return `(${quoted(whole)}:* | ${quoted(`=${whole}`)}${inParts})`;
    });
    const asOne = words.length > 1 ? ` | ${quoted(joined(words))} | ${quoted(`=${joined(words)}`)}` : '';
    return [`${each.join(' & ')}${asOne}`];
  });
  return queries.length === 0 ? null : queries.join(' | ');
}

export const foldedAtOnce = 1000;

/**
 * Folds clients that another version of the folding has stored, at most `foldedAtOnce`, in the transaction of the
 * caller. Returns their number.
 */
export async function refoldClients(client: Queries): Promise<number> {
  const { rows } = await client.query<Searched & { client_id: string }>(
    `select client_id, first_name, last_name, company_name, registration_number, email from clients
     where folding < $1 and erased_at is null limit ${foldedAtOnce} for no key update skip locked`,
    [foldingVersion],
  );
  if (rows.length > 0)
    await client.query(
      `update clients set (${foldedColumns}) = (select ${foldedColumns.replace(/\w+/g, 'f.$&')}) from json_populate_recordset(null::clients, $1) f
       where clients.client_id = f.client_id`,
      [JSON.stringify(rows.map((row) => ({ client_id: row.client_id, ...foldClient(row) })))],
    );
  return rows.length;
}

/** Folds all such clients, as the owner after a migration. */
export async function refoldAll(client: Queries, logger: Logger): Promise<void> {
  let clients = 0;
  for (let folded = foldedAtOnce; folded === foldedAtOnce; clients += folded) {
    await client.query('begin');
    folded = await refoldClients(client);
    await client.query('commit');
  }
  if (clients > 0) logger.info({ clients }, 'names of clients folded for the search');
}
