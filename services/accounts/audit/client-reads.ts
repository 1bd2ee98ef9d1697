import type { AuditRecord, SearchHit } from '#libs/contracts/administration.ts';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { auditId } from '#libs/contracts/ids.ts';
import type { MessageName } from '#libs/contracts/messages.ts';
import type { Client } from '#libs/contracts/resources.ts';

/** Which clients the data of a reply shows, by query. */
const clientsIn: { [N in MessageName]?: (data: unknown) => string[] } = {
  get_client: (data) => [(data as Client).client_id],
  search_client_by_ussd: (data) => [(data as Client).client_id],
  list_clients: (data) => (data as { items: Client[] }).items.map(({ client_id }) => client_id),
  search_records: (data) => (data as SearchHit[]).flatMap(({ kind, id }) => (kind === 'client' ? [id] : [])),
};

/** PURE: who read a client: one record for each that a member of staff, in person, is shown. Of machines none. `now`: ISO 8601 UTC. */
export function clientReads(name: MessageName, context: MessageContext, body: ReplyBody | undefined, now: string): AuditRecord[] {
  if (context.staff !== 'true' || !body?.ok) return [];
  const clients = clientsIn[name]?.(body.data) ?? [];
  const common = { created_at: now, actor: context.actor, action: name === 'search_records' ? 'search' : name, outcome: 'success', request_id: context.request_id, details: {}, address: null };
  return clients.map((client_id) => ({ audit_id: auditId(`${context.message_id} ${client_id}`), resource_id: client_id, ...common }));
}
