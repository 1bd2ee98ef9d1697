import type { AuditRecord, DeadLetterContent, SearchHit } from '#libs/contracts/administration.ts';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { auditId } from '#libs/contracts/ids.ts';
import type { MessageName } from '#libs/contracts/messages.ts';
import type { Client } from '#libs/contracts/resources.ts';

/** Whose personal data a reply shows, by query: clients, and dead letters, which may hold anybody's. */
const shownIn: { [N in MessageName]?: (data: unknown) => string[] } = {
  get_client: (data) => [(data as Client).client_id],
  search_client_by_ussd: (data) => [(data as Client).client_id],
  list_clients: (data) => (data as { items: Client[] }).items.map(({ client_id }) => client_id),
  search_records: (data) => (data as SearchHit[]).flatMap(({ kind, id }) => (kind === 'client' ? [id] : [])),
  get_dead_letter: (data) => [(data as DeadLetterContent).dead_letter_id],
};

/**
 * PURE: who saw personal data: one record for each client that a member of staff, in person, is shown, and for each dead letter
 * whoever is shown it. Of clients, machines leave none. `now`: ISO 8601 UTC.
 */
export function clientReads(name: MessageName, context: MessageContext, body: ReplyBody | undefined, now: string): AuditRecord[] {
  if ((context.staff !== 'true' && name !== 'get_dead_letter') || !body?.ok) return [];
  const shown = shownIn[name]?.(body.data) ?? [];
  const common = { created_at: now, actor: context.actor, action: name === 'search_records' ? 'search' : name, outcome: 'success', request_id: context.request_id, details: {}, address: null };
  return shown.map((id) => ({ audit_id: auditId(`${context.message_id} ${id}`), resource_id: id, ...common }));
}
