import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { AuditRecord } from '#libs/contracts/administration.ts';
import { endpoints } from '#libs/contracts/endpoints.ts';
import type { Endpoint } from '#libs/contracts/endpoints.ts';
import { errorCodes } from '#libs/contracts/errors.ts';
import type { ErrorCode } from '#libs/contracts/errors.ts';
import { auditId, isId } from '#libs/contracts/ids.ts';
import type { Publisher } from '#libs/kafka/publish/publish.ts';
import { encodeNotice } from '../api/forward.ts';
import { kindOfField } from '../api/unknown-ids.ts';

/** What the gateway itself tells auditors: what it refused, and who signed in and out. */
export interface AuditRecords {
  /** Takes note of an answer other than success, if it is one of those that auditors ask about. Nobody waits for it; what cannot be sent is logged. */
  refused(request: FastifyRequest, code: ErrorCode): void;
  /** Takes note of what somebody did, or was not let do. Nobody waits for it; what cannot be sent is logged. */
  note(request: FastifyRequest, act: Act): void;
  /** Records what somebody did. Resolves once the broker has it; rejects where nobody can say that it has. */
  record(request: FastifyRequest, act: Act): Promise<void>;
}

/** Details: short facts, never personal data or secrets. */
export type Act = Pick<AuditRecord, 'actor' | 'action' | 'resource_id' | 'details'> & { outcome: 'success' | ErrorCode };

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Of the dashboard's routes, which are no endpoints: the name under which a refusal is recorded. */
    action?: string;
  }
}

export interface AuditRecordsOptions {
  publisher: Pick<Publisher, 'publish'>;
  prefix: string;
  logger: Logger;
  /** The bank's time, in ms since 1970. */
  now: () => number;
}

/** Records on their way to the broker at most; beyond that they are logged only. */
const maxUnderWay = 1_000;
const publishTimeoutMs = 5_000;
const staffScopes = new Set<string>(['accounts:status', 'transactions:reverse']);
const refusedStatuses = new Set<number>([401, 403, 404, 405]);
/** What a path may show: the words of our own routes. Anything else was made up by the caller, and could be a secret. */
const knownSegments = new Set(Object.values(endpoints).flatMap(({ path }) => path.split('/').filter((segment) => !segment.startsWith(':'))));

export function createAuditRecords({ publisher, prefix, logger, now }: AuditRecordsOptions): AuditRecords {
  let underWay = 0;
  const send = async (record: AuditRecord): Promise<void> => {
    if (underWay >= maxUnderWay) throw new Error(`${underWay} records wait already`);
    underWay++;
    try {
      const command = { name: 'record_audit' as const, id: record.audit_id, key: record.actor, data: record, acceptedAt: new Date(record.created_at) };
      await publisher.publish(encodeNotice(command, record.request_id, prefix), { timeoutMs: publishTimeoutMs });
    } finally {
      underWay--;
    }
  };
  const note = (request: FastifyRequest, act: Act): void => {
    const record = recordOf(request, act, now());
    send(record).catch((error: unknown) => logger.warn({ err: error, record }, 'an audit record was lost'));
  };
  return {
    refused(request, code) {
      if (isForAuditors(request, code)) note(request, refusalOf(request, code));
    },
    note,
    record: (request, act) => send(recordOf(request, act, now())),
  };
}

function recordOf({ id, ip }: FastifyRequest, act: Act, nowMs: number): AuditRecord {
  return { audit_id: auditId(`gtw_${randomUUID()}`), created_at: new Date(nowMs).toISOString(), ...act, request_id: id, address: ip };
}

/**
 * Refused authentication, permission or route under /admin, and refused permission of what staff do elsewhere. Failed
 * authentications beyond their limit are 429, and not recorded.
 */
function isForAuditors(request: FastifyRequest, code: ErrorCode): boolean {
  const { status } = errorCodes[code];
  if (/^\/admin(\/|$)/.test(pathOf(request))) return refusedStatuses.has(status);
  return status === 403 && request.routeOptions?.config.scopes?.some((scope) => staffScopes.has(scope)) === true;
}

/** The route's own path where there is one, so that no spelling of it goes by. */
function pathOf(request: FastifyRequest): string {
  return request.routeOptions?.url ?? (request.url.split('?', 1)[0] ?? '').toLowerCase();
}

function refusalOf(request: FastifyRequest, outcome: ErrorCode): Act {
  const { endpoint: name, action } = request.routeOptions?.config ?? {};
  const endpoint: Endpoint | undefined = name && endpoints[name];
  const shown = () => (action === undefined ? pathOf(request).split('/').slice(0, 8).map((segment) => (knownSegments.has(segment) ? segment : '…')).join('/') : pathOf(request));
  return {
    actor: request.caller?.actor ?? 'unauthenticated',
    action: name ?? action ?? 'unknown_route',
    resource_id: resourceOf(request),
    outcome,
    details: { method: request.method, path: endpoint?.path ?? shown() },
  };
}

/** The id in the path, if it has the form of one. */
function resourceOf({ params }: FastifyRequest): string | null {
  const [[name, value] = []] = Object.entries((params ?? {}) as Record<string, string>);
  const kind = name === undefined ? undefined : kindOfField[name];
  return kind && value !== undefined && isId(kind, value) ? value : null;
}
