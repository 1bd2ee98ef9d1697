import type { FastifyRequest } from 'fastify';
import { endpoints, queryNames } from '#libs/contracts/endpoints.ts';
import { violated } from '#libs/contracts/violations.ts';
import { type AccessToken, type Caller, listScopes } from '../access/caller.ts';
import type { EndedTokens } from '../access/ended-tokens.ts';
import type { ReadDisplayName } from '../access/id-tokens.ts';
import type { AuditRecords } from '../audit/audit-records.ts';
import { Refused, refuse, refuseViolations, unavailable } from '../http/errors.ts';
import { send } from './answer.ts';
import { parseFields } from './input.ts';
import { givenFilters, recordOrRefuse } from './recorded-reads.ts';
import { requireCaller } from './request.ts';
import type { Handler } from './routes.ts';

/**
 * Sign-ins, sign-outs, exports, and refused pages, as an application for staff reports them with the person's own token.
 * The bank sees only its own side of them.
 */

export interface SignInDependencies {
  auditRecords: AuditRecords;
  endedTokens: Pick<EndedTokens, 'end' | 'endEarlier'>;
  readDisplayName: ReadDisplayName;
}

/** Returns the caller and the access token of a person. Throws a Refused for a key, a machine, or a customer. */
function requirePerson(request: FastifyRequest): { caller: Caller; token: AccessToken } {
  const caller = requireCaller(request);
  if (!caller.isStaff || !caller.token)
    throw refuse('insufficient_scope', 'only a person of the bank, with an access token, can do this');
  return { caller, token: caller.token };
}

/** Throws a Refused for a filter that no endpoint has, because its name could be anything. */
function checkFilterNames(filters: Record<string, unknown>): void {
  const unknown = Object.keys(filters).filter((name) => !queryNames.has(name));
  if (unknown.length === 0) return;
  throw refuseViolations(
    unknown.map((name) => violated(['filters', name], 'validation_failed', 'is no filter of the API')),
  );
}

/** Rejects with service_unavailable if the broker does not take the message. */
async function publishedOrRefused(published: Promise<void>): Promise<void> {
  await published.catch(() => {
    throw new Refused(unavailable);
  });
}

export const signInHandlers = {
  /**
   * Recorded before the response, so that nobody is signed in without a record. A record may exist of a sign-in that got
   * 503.
   */
  sign_in:
    ({ auditRecords, endedTokens, readDisplayName }: SignInDependencies): Handler =>
    async (request, reply) => {
      const { session_id, id_token } = parseFields(endpoints.sign_in.body, request.body ?? {});
      const { caller, token } = requirePerson(request);
      const { actor } = caller;
      const name = id_token === undefined ? null : await readDisplayName(id_token, caller);
      const act = {
        actor,
        action: 'sign_in',
        resource_id: session_id,
        outcome: 'success' as const,
        details: {},
        ...(name !== null && { actor_name: name }),
      };
      await recordOrRefuse(auditRecords, request, act);
      await publishedOrRefused(endedTokens.endEarlier(token));
      send(reply, 200, { session_id, actor, name, scopes: listScopes(caller) });
    },
  /** Never waits for its audit record, because a token that should end must not remain usable for want of one. */
  sign_out:
    ({ auditRecords, endedTokens }: SignInDependencies): Handler =>
    async (request, reply) => {
      const { session_id } = parseFields(endpoints.sign_out.body, request.body ?? {});
      const { caller, token } = requirePerson(request);
      const { actor } = caller;
      auditRecords.note(request, {
        actor,
        action: 'sign_out',
        resource_id: session_id,
        outcome: 'success',
        details: {},
      });
      await publishedOrRefused(endedTokens.end(token));
      send(reply, 200, { session_id });
    },
  record_activity:
    ({ auditRecords }: SignInDependencies): Handler =>
    async (request, reply) => {
      const body = parseFields(endpoints.record_activity.body, request.body ?? {});
      const { actor } = requirePerson(request).caller;
      const { action, outcome, resource_id = null, file, filters = {} } = body;
      checkFilterNames(filters);
      if (outcome === 'success') {
        const details = { ...(file === undefined ? {} : { file }), filters: givenFilters(filters) };
        await recordOrRefuse(auditRecords, request, { actor, action, resource_id, outcome, details });
        auditRecords.done(request, action);
      } else auditRecords.refused(request, outcome, action);
      send(reply, 200, { action, outcome });
    },
};
