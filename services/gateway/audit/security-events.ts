import { randomUUID } from 'node:crypto';
import { source, toHeaders } from '#libs/contracts/envelope.ts';
import { type EventData, events, schemaId } from '#libs/contracts/events.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import type { Summary } from './activities.ts';

const type = 'corebanking.security.activity.v1';

/** Classes and activities of the Open Cybersecurity Schema Framework (OCSF), by which a SIEM classifies events. */
const authentication = { class_uid: 3002, class_name: 'Authentication' } as const;
const entityManagement = { class_uid: 3004, class_name: 'Entity Management' } as const;
const apiActivity = { class_uid: 6003, class_name: 'API Activity' } as const;

const ofMethods: Record<string, string> = {
  GET: 'Read',
  HEAD: 'Read',
  POST: 'Create',
  PATCH: 'Update',
  DELETE: 'Delete',
};
const ofKeys: Record<string, string> = { create_api_key: 'Create', rotate_api_key: 'Update', revoke_api_key: 'Delete' };

function eventClass({
  action,
  outcome,
  actor,
  method,
}: Summary): Pick<EventData<typeof type>, 'class_uid' | 'class_name' | 'activity_name'> {
  if (action === 'sign_out') return { ...authentication, activity_name: 'Logoff' };
  const isCredential = outcome.endsWith('_credentials') || (outcome === 'rate_limited' && actor === 'unauthenticated');
  if (action === 'sign_in' || isCredential) return { ...authentication, activity_name: 'Logon' };
  const ofKey = outcome === 'success' ? ofKeys[action] : undefined;
  return ofKey === undefined
    ? { ...apiActivity, activity_name: ofMethods[method] ?? 'Other' }
    : { ...entityManagement, activity_name: ofKey };
}

/** Returns the event published for a summary, for a SIEM. Pure, except for a new id. */
export function securityEvent(summary: Summary, at: string, prefix: string): OutgoingMessage {
  const { isAudited: _audited, method: _method, path: _path, ...counted } = summary;
  const { actor, outcome, request_id } = counted;
  const status = outcome === 'success' ? ('Success' as const) : ('Failure' as const);
  const message_id = randomUUID();
  const identity = { event_id: message_id, event_type: type };
  const data: EventData<typeof type> = { ...eventClass(summary), status, until: at, ...counted, ...identity };
  const headers = toHeaders({
    message_id,
    type,
    source: source.gateway,
    time: at,
    subject: actor,
    request_id,
    actor,
  });
  headers['ce_dataschema'] = schemaId(type);
  return { topic: topicName(prefix, events[type].topic), key: actor, value: JSON.stringify(data), headers };
}
