import { z } from 'zod';
import { type EndpointRows, example, type Meanings, message, shown } from './subject.ts';
import { text } from './texts.ts';

/** A remark of staff, for staff: on a client, or on one of their accounts. */
const noteSchema = z
  .object({
    note_id: z.string(),
    client_id: z.string(),
    /** null: on the client. */
    account_id: z.string().nullable(),
    note: z.string(),
    actor: z.string(),
    created_at: shown.time,
  })
  .meta({ id: 'Note' });
export type Note = z.infer<typeof noteSchema>;

const noteBody = z.strictObject({ note: text(1, 500, { lines: true }) });

const ofStaff = 'Notes are of staff, for staff: not for credentials bound to one client. A note is never changed.';

export const clientNoteEndpoints = {
  add_client_note: {
    route: 'POST /clients/:client_id/notes',
    summary: 'Leave a note on a client',
    scope: 'clients:write',
    bankOnly: true,
    body: noteBody,
    description: ofStaff,
    success: 201,
    errors: ['client_erased'],
  },
  list_client_notes: {
    route: 'GET /clients/:client_id/notes',
    summary: 'Notes on a client',
    scope: 'clients:read',
    bankOnly: true,
    description: ofStaff,
    shape: 'page',
    message: 'list_notes',
  },
} satisfies EndpointRows;

export const accountNoteEndpoints = {
  add_account_note: {
    route: 'POST /accounts/:account_id/notes',
    summary: 'Leave a note on an account',
    scope: 'accounts:write',
    bankOnly: true,
    body: noteBody,
    description: ofStaff,
    success: 201,
    errors: ['client_erased'],
    answers: { account: { account_id: example.ids.account } },
  },
  list_account_notes: {
    route: 'GET /accounts/:account_id/notes',
    summary: 'Notes on an account',
    scope: 'accounts:read',
    bankOnly: true,
    description: ofStaff,
    shape: 'page',
    message: 'list_notes',
    answers: { account: { account_id: example.ids.account } },
  },
} satisfies EndpointRows;

export const noteMessages = {
  add_client_note: message.accounts.command(
    { note_id: message.id, client_id: message.id, note: z.string() },
    noteSchema,
  ),
  add_account_note: message.accounts.command(
    { note_id: message.id, account_id: message.id, note: z.string() },
    noteSchema,
  ),
  list_notes: message.accounts.query(
    { client_id: message.id.optional(), account_id: message.id.optional(), ...message.page },
    message.pageSchema(noteSchema),
  ),
};

export const noteMeanings = {
  fields: {
    note_id: 'The note, an opaque text',
    'Note.account_id': 'The account; null: the note is on the client',
    'Note.note': 'The text of the note',
    'add_client_note.note': 'The text of the note, 1 to 500 characters',
    'add_account_note.note': 'The text of the note, 1 to 500 characters',
  },
} satisfies Meanings;
