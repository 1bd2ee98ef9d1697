import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { type Endpoint, endpoints } from '#libs/contracts/endpoints.ts';
import { type ErrorCode, errorCodes } from '#libs/contracts/errors.ts';
import { auditId, isId, kindFromField } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { Publisher } from '#libs/kafka/publish/publish.ts';
import { plainAddress, toNetwork } from '#libs/service/networks.ts';
import { encodeNotice } from '../messages/encode.ts';
import type { GatewayMetrics } from '../observe/gateway-metrics.ts';
import { Activities, type Activity, type Summary, unauthenticatedActor } from './activities.ts';
import { securityEvent } from './security-events.ts';

export type AuditRecords = ReturnType<typeof createAuditRecords>;

/** Details are short facts, never personal data or secrets. */
type Act = Pick<AuditRecord, 'actor' | 'action' | 'resource_id' | 'details'> & {
  outcome: 'success' | ErrorCode;
  /** The display name of a person who signs in. It is kept beside the record. */
  actor_name?: string;
};

export interface AuditRecordsOptions {
  publisher: Pick<Publisher, 'publish'>;
  prefix: string;
  logger: Logger;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  metrics: Pick<GatewayMetrics, 'activity' | 'destinationRefusals'>;
  summaryMs?: number;
}

/** The maximum number of records being sent. More are only logged. */
const maxUnderWay = 1_000;
const publishTimeoutMs = 5_000;
const refusedUnderAdmin = new Set<number>([404, 405]);
/**
 * The path segments that a record may contain, which are those of our own routes. Others come from the caller and could
 * be secrets.
 */
const knownSegments = new Set(
  Object.values(endpoints).flatMap(({ path }) => path.split('/').filter((segment) => !segment.startsWith(':'))),
);

/**
 * Records for auditors and a SIEM what only the gateway observes: refused requests, reads by staff, sign-ins, and
 * sign-outs.
 */
export function createAuditRecords({
  publisher,
  prefix,
  logger,
  now,
  metrics,
  summaryMs = 60_000,
}: AuditRecordsOptions) {
  const activities = new Activities();
  let underWay = 0;
  let timer: NodeJS.Timeout | undefined;
  const send = async (record: MessageData<'record_audit'>): Promise<void> => {
    if (underWay >= maxUnderWay) throw new Error(`${underWay} records are already waiting`);
    underWay++;
    try {
      const command = {
        name: 'record_audit' as const,
        id: record.audit_id,
        key: record.actor,
        data: record,
        acceptedAt: new Date(record.created_at),
      };
      await publisher.publish(encodeNotice(command, record.request_id, prefix), { timeoutMs: publishTimeoutMs });
    } finally {
      underWay--;
    }
  };
  const sendOrLog = (record: MessageData<'record_audit'>): Promise<void> =>
    send(record).catch((error: unknown) => logger.warn({ err: error, record }, 'an audit record was lost'));
  const publishSummary = async (summary: Summary, at: string): Promise<void> => {
    const published = publisher.publish(securityEvent(summary, at, prefix), { timeoutMs: publishTimeoutMs });
    await published.catch((error: unknown) => logger.warn({ err: error, summary }, 'a security event was lost'));
  };
  const count = (activity: Activity): void => {
    // Without the page, which an application for staff chooses.
    metrics.activity(activity.action.split(':', 1)[0] ?? '', activity.outcome);
    activities.add(activity, new Date(now()).toISOString());
  };
  const flush = async (): Promise<void> => {
    const at = new Date(now()).toISOString();
    const summaries = activities.take();
    metrics.destinationRefusals(mostOfOneDestination(summaries));
    await Promise.all(
      summaries.flatMap((summary) => [
        publishSummary(summary, at),
        ...(summary.isAudited ? [sendOrLog(recordOfSummary(summary, at))] : []),
      ]),
    );
  };
  return {
    /** Counts an error response for the next summary, if auditors are interested in it. */
    refused(request: FastifyRequest, code: ErrorCode, action?: string): void {
      const isAudited = isForAuditors(request, code);
      if (isAudited || code === 'destination_refused') count({ ...toActivity(request, code, action), isAudited });
    },
    /** Counts an item of a batch that was refused because of its destination, like a separate request. */
    destinationRefused: (request: FastifyRequest, resource_id: string): void =>
      count({ ...toActivity(request, 'destination_refused'), resource_id, isAudited: false }),
    /** Counts an action that accounts records, for the topic `security` only. */
    done: (request: FastifyRequest, action: string): void =>
      count({ ...toActivity(request, 'success', action), isAudited: false }),
    /** Records an action or a refused attempt without waiting. If it cannot be sent, it is logged. */
    note: (request: FastifyRequest, act: Act): void => void sendOrLog(toAuditRecord(request, act, now())),
    /** Records an action. Resolves when the broker has the record; rejects if that is unknown. */
    record: (request: FastifyRequest, act: Act): Promise<void> => send(toAuditRecord(request, act, now())),
    /** Sends the summaries of what was counted. Also called every `summaryMs` after `start`, and by `stop`. */
    flush,
    start: (): void => void (timer = setInterval(() => void flush(), summaryMs)),
    async stop(): Promise<void> {
      clearInterval(timer);
      await flush();
    },
  };
}

function toAuditRecord({ id, ip }: FastifyRequest, act: Act, nowMs: number): MessageData<'record_audit'> {
  return {
    audit_id: auditId(`gtw_${randomUUID()}`),
    created_at: new Date(nowMs).toISOString(),
    ...act,
    request_id: id,
    address: plainAddress(ip),
  };
}

function recordOfSummary({ isAudited: _, count, since, method, path, ...rest }: Summary, at: string): AuditRecord {
  return { audit_id: auditId(`gtw_${randomUUID()}`), created_at: at, ...rest, details: { method, path, count, since } };
}

function mostOfOneDestination(summaries: Summary[]): number {
  const counts = new Map<string | null, number>();
  for (const { outcome, resource_id, count } of summaries)
    if (outcome === 'destination_refused') counts.set(resource_id, (counts.get(resource_id) ?? 0) + count);
  return Math.max(0, ...counts.values());
}

/**
 * Reports whether a refusal is recorded: refused credentials (429 beyond their limit), missing permissions, and
 * unknown paths under /admin.
 */
function isForAuditors(request: FastifyRequest, code: ErrorCode): boolean {
  const { status } = errorCodes[code];
  if (status === 401 || status === 403 || (status === 429 && !request.caller)) return true;
  return refusedUnderAdmin.has(status) && /^\/admin(\/|$)/.test(auditedPath(request));
}

/** Returns the path of the route, if there is one, so that different spellings are counted together. */
function auditedPath(request: FastifyRequest): string {
  return request.routeOptions?.url ?? (request.url.split('?', 1)[0] ?? '').toLowerCase();
}

function toActivity(
  request: FastifyRequest,
  outcome: Activity['outcome'],
  given?: string,
): Omit<Activity, 'isAudited'> {
  const { endpoint: name } = request.routeOptions?.config ?? {};
  const endpoint: Endpoint | undefined = name && endpoints[name];
  const shown = () =>
    auditedPath(request)
      .split('/')
      .slice(0, 8)
      .map((segment) => (knownSegments.has(segment) ? segment : '…'))
      .join('/');
  return {
    actor: request.caller?.actor ?? unauthenticatedActor,
    address: toNetwork(request.ip),
    action: given ?? name ?? 'unknown_route',
    outcome,
    resource_id: outcome === 'destination_refused' ? requestedDestination(request) : resourceInPath(request),
    request_id: request.id,
    method: request.method,
    path: endpoint?.path ?? shown(),
  };
}

function requestedDestination({ body }: FastifyRequest): string | null {
  const { to_account_id } = (body ?? {}) as { to_account_id?: unknown };
  return typeof to_account_id === 'string' && isId('account', to_account_id) ? to_account_id : null;
}

/** Returns the id in the path if it has the form of one. */
export function resourceInPath({ params }: FastifyRequest): string | null {
  const [[name, value] = []] = Object.entries((params ?? {}) as Record<string, string>);
  const kind = kindFromField(name);
  return kind && value !== undefined && isId(kind, value) ? value : null;
}
