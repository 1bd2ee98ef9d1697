import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { AuditRecord } from '#libs/contracts/administration.ts';
import { endpoints } from '#libs/contracts/endpoints.ts';
import type { Endpoint } from '#libs/contracts/endpoints.ts';
import { errorCodes } from '#libs/contracts/errors.ts';
import type { ErrorCode } from '#libs/contracts/errors.ts';
import { auditId, isId } from '#libs/contracts/ids.ts';
import type { Publisher } from '#libs/kafka/publish.ts';
import { encodeNotice } from './forward.ts';
import { kindOfField } from './unknown-ids.ts';

/** Notes refused calls for auditors. Nobody waits for it; what cannot be sent is logged. */
export interface RefusedCalls {
  /** Takes note of an answer other than success, if it is one of those that auditors ask about. */
  take(request: FastifyRequest, code: ErrorCode): void;
}

export interface RefusedCallsOptions {
  publisher: Pick<Publisher, 'publish'>;
  prefix: string;
  logger: Logger;
}

/** Records on their way to the broker at most; beyond that they are logged only. */
const maxUnderWay = 1_000;
const publishTimeoutMs = 5_000;
const staffScopes = new Set<string | null | undefined>(['accounts:status', 'transactions:reverse']);
const refusedStatuses = new Set<number>([401, 403, 404, 405]);
/** What a path may show: the words of our own routes. Anything else was made up by the caller, and could be a secret. */
const knownSegments = new Set(Object.values(endpoints).flatMap(({ path }) => path.split('/').filter((segment) => !segment.startsWith(':'))));

export function createRefusedCalls({ publisher, prefix, logger }: RefusedCallsOptions): RefusedCalls {
  let underWay = 0;
  const send = async (record: AuditRecord, id: string): Promise<void> => {
    if (underWay >= maxUnderWay) throw new Error(`${underWay} records wait already`);
    underWay++;
    try {
      const command = { name: 'record_audit' as const, id, key: record.actor, data: record, acceptedAt: new Date(record.created_at) };
      await publisher.publish(encodeNotice(command, record.request_id, prefix), { timeoutMs: publishTimeoutMs });
    } finally {
      underWay--;
    }
  };
  return {
    take(request, code) {
      if (!isForAuditors(request, code)) return;
      const id = `ref_${randomUUID()}`;
      const record = recordOf(request, code, id);
      send(record, id).catch((error: unknown) => logger.warn({ err: error, record }, 'the audit record of a refused call was lost'));
    },
  };
}

/**
 * Refused authentication, permission or route under /admin, and refused permission of what staff do elsewhere. Failed
 * authentications beyond their limit are 429, and not recorded.
 */
function isForAuditors(request: FastifyRequest, code: ErrorCode): boolean {
  const { status } = errorCodes[code];
  if (/^\/admin(\/|$)/.test(pathOf(request))) return refusedStatuses.has(status);
  return status === 403 && staffScopes.has(request.routeOptions?.config.scope);
}

/** The route's own path where there is one, so that no spelling of it goes by. */
function pathOf(request: FastifyRequest): string {
  return request.routeOptions?.url ?? (request.url.split('?', 1)[0] ?? '').toLowerCase();
}

function recordOf(request: FastifyRequest, code: ErrorCode, id: string): AuditRecord {
  const name = request.routeOptions?.config.endpoint;
  const endpoint: Endpoint | undefined = name && endpoints[name];
  const path = endpoint?.path ?? pathOf(request).split('/').slice(0, 8).map((segment) => (knownSegments.has(segment) ? segment : '…')).join('/');
  return {
    audit_id: auditId(id),
    created_at: new Date().toISOString(),
    actor: request.caller?.actor ?? 'unauthenticated',
    action: name ?? 'unknown_route',
    resource_id: resourceOf(request),
    outcome: code,
    request_id: request.id,
    details: { method: request.method, path },
    address: request.ip,
  };
}

/** The id in the path, if it has the form of one. */
function resourceOf({ params }: FastifyRequest): string | null {
  const [[name, value] = []] = Object.entries((params ?? {}) as Record<string, string>);
  const kind = name === undefined ? undefined : kindOfField[name];
  return kind && value !== undefined && isId(kind, value) ? value : null;
}
