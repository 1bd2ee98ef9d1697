import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Logger } from 'pino';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { boundConnections, httpPatience, markAnswered, patience } from '#libs/service/connections.ts';
import { requestIdOf } from '#libs/service/fresh-ids.ts';
import { logRefused } from '#libs/service/refused-requests.ts';
import type { Tracing } from '#libs/service/tracing.ts';
import { createAuthenticate } from './access/auth.ts';
import { answerOptions, checkRoute, createGate, createRateLimits, undecodable } from './access/gate.ts';
import { createDisplayNames } from './access/id-tokens.ts';
import { createTokenVerifier, type TokenOptions } from './access/tokens.ts';
import { addRoutes, type RouteDependencies } from './api/routes.ts';
import type { AuditRecords } from './audit/audit-records.ts';
import { acceptPatch, checkCodings, mergePatch, parseBody, type Received, receiveBody } from './http/body.ts';
import { answerClientError, forgetLatest, rememberLatest } from './http/client-errors.ts';
import { createCors } from './http/cors.ts';
import { addDocs } from './http/docs.ts';
import { internalError, Refused, refuse, sendRefusal, toRefusal, unsupportedType } from './http/errors.ts';
import { addSecurityText } from './http/security-text.ts';
import { traceRequests } from './http/trace.ts';
import type { GatewayMetrics } from './observe/gateway-metrics.ts';
import { type BodyMemoryLimit, createBodyMemoryLimit } from './overload/body-memory-limit.ts';
import { type LoadShedding, Shed } from './overload/load-shedding.ts';

/** Of all addresses; one may have a tenth of them, except the proxies in TRUST_PROXY. */
const maxConnections = 10_000;

export interface AppDependencies extends Omit<RouteDependencies, 'bodyMemoryLimit' | 'readDisplayName'> {
  loadShedding: Pick<LoadShedding, 'refuse'>;
  tokens: TokenOptions;
  rateLimitPerMinute: number;
  authFailuresPerMinute: number;
  trustProxy: string[];
  corsOrigins: string[];
  /** The contact in /.well-known/security.txt; undefined: the path does not exist. */
  securityContact?: string | undefined;
  auditRecords: AuditRecords;
  logger: Logger;
  metrics: GatewayMetrics;
  tracing?: Tracing | undefined;
  /** True once this process is stopping; every response then closes its connection. */
  isDraining?: () => boolean;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The number of received bytes of the body. */
    heldBytes: number;
  }
  interface FastifyReply {
    /** True for an outcome that is not known yet and must be asked for. */
    isPending: boolean;
  }
}

/** Large enough for a token of 64 KB, which is refused like any invalid token, and for ids of 10 KB in a path. */
const maxHeaderBytes = 80 * 1024;

const serverOptions = {
  // One child logger per request costs too much. Requests are logged explicitly, with the request id.
  logger: false,
  genReqId: requestIdOf,
  bodyLimit: 64 * 1024,
  ...patience,
  http: { ...httpPatience, maxHeaderSize: maxHeaderBytes, requireHostHeader: false, joinDuplicateHeaders: true },
  forceCloseConnections: 'idle',
  // While the process stops, requests on open connections are answered, and the connections are then closed.
  return503OnClosing: false,
  routerOptions: { maxParamLength: maxHeaderBytes },
  rewriteUrl: originForm,
} as const;

const securityHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/** The paths whose resources can be patched. */
const patchable = new Set<string | undefined>(
  Object.values(endpoints).flatMap(({ method, path }) => (method === 'PATCH' ? [path] : [])),
);

/** Successful operations that are reported to a SIEM, in addition to refusals. */
const reportedToSiem = new Set(['create_api_key', 'rotate_api_key', 'revoke_api_key', 'sign_in', 'sign_out']);

/** Creates the public API from its dependencies. It does not listen yet. */
export async function createApp(deps: AppDependencies): Promise<FastifyInstance> {
  const { now } = deps;
  const app = fastify({
    ...serverOptions,
    clientErrorHandler: (error, socket) => answerClientError(deps.logger, error, socket),
    trustProxy: deps.trustProxy.length > 0 ? deps.trustProxy : false,
    // A request that the router refuses has no route and runs no hook.
    frameworkErrors: (_error, request, reply) =>
      pipeline.refuseUndecodable(request as unknown as FastifyRequest, reply as unknown as FastifyReply),
  });
  app.decorateRequest('caller', null);
  app.decorateRequest('span', null);
  app.decorateRequest('heldBytes', 0);
  app.decorateReply('isPending', false);
  const verifyToken = await createTokenVerifier(app, deps.tokens, now);
  const authenticate = createAuthenticate(verifyToken, deps.apiKeys);
  const limits = await createRateLimits(app, {
    requests: deps.rateLimitPerMinute,
    failures: deps.authFailuresPerMinute,
  });
  const gate = createGate(authenticate, limits);
  // Fastify closes the connection after refusing a body. Here the rest of the body is read and dropped (receiveBody).
  const keepConnection = (reply: FastifyReply): void => {
    if (deps.isDraining?.() !== true) reply.removeHeader('connection');
  };
  const answerError = errorHandler(deps, keepConnection);
  const pipeline = createRequestPipeline(deps, gate, answerError);

  boundConnections(app.server, {
    max: maxConnections,
    proxies: deps.trustProxy,
    onCut: () => deps.metrics.connectionCut(),
  });
  app.server.on('request', rememberLatest);
  // Without a listener, Node would close the connection of a CONNECT without a response.
  app.server.on('connect', (request, socket) =>
    answerClientError(deps.logger, new Error('CONNECT'), socket as Socket, request),
  );
  // For an unknown Expect, Node would respond with 417 and an empty body, before authentication.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  if (deps.tracing) traceRequests(app, deps.tracing);
  app.addHook('onRequest', pipeline.onRequest);
  app.addHook('onResponse', (request, reply, done) => {
    forgetLatest(request.raw);
    markAnswered(request.raw);
    const { endpoint = 'none' } = request.routeOptions.config;
    deps.metrics.answered(endpoint, reply.statusCode, reply.elapsedTime / 1000, reply.isPending);
    if (reportedToSiem.has(endpoint) && reply.statusCode < 300) deps.auditRecords.done(request, endpoint);
    if (deps.logger.isLevelEnabled('debug')) logAnswer(deps.logger, request, reply);
    done();
  });
  app.setErrorHandler(answerError);
  // Only unknown paths below /docs reach this handler; all others are refused before.
  app.setNotFoundHandler(() => {
    throw refuse('route_not_found', 'the path does not exist');
  });
  const bodyMemoryLimit = createBodyMemoryLimit(() => deps.metrics.shed('bytes'));
  const receive = receiver(app, bodyMemoryLimit);
  takeJsonOnly(app, receive, bodyMemoryLimit);
  if (deps.securityContact !== undefined) addSecurityText(app, deps.securityContact, now);
  await addDocs(app);
  addRoutes(app, { ...deps, bodyMemoryLimit, now, readDisplayName: createDisplayNames(deps.tokens, now) });
  return app;
}

/** Processes a request before its route: response headers, CORS, authentication, scopes. */
function createRequestPipeline(
  deps: AppDependencies,
  gate: ReturnType<typeof createGate>,
  answerError: ReturnType<typeof errorHandler>,
) {
  const cors = createCors(deps.corsOrigins);
  const begin = (request: FastifyRequest, reply: FastifyReply): void => {
    reply.headers(securityHeaders);
    reply.header('x-request-id', request.id);
    if (patchable.has(request.routeOptions?.url)) reply.header('accept-patch', acceptPatch);
    // No client may send its next request on a connection that is about to be closed.
    if (deps.isDraining?.() === true) reply.header('connection', 'close');
    cors.mark(request, reply);
  };
  return {
    async onRequest(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
      begin(request, reply);
      if (cors.isPreflight(request)) return cors.answerPreflight(request, reply);
      if (request.routeOptions.config.public === true) return undefined;
      const shed = deps.loadShedding.refuse(request);
      if (shed) throw shed;
      await gate(request, reply);
      const refused = checkRoute(request);
      if (refused) throw refused;
      return request.method === 'OPTIONS' ? answerOptions(request, reply) : undefined;
    },
    refuseUndecodable(request: FastifyRequest, reply: FastifyReply): void {
      begin(request, reply);
      gate(request, reply).then(
        () => answerError(undecodable(request), request, reply),
        (refused) => answerError(refused, request, reply),
      );
    },
  };
}

type Receive = (request: FastifyRequest, payload: IncomingMessage, done: Received) => void;

/** Returns the actor for whom a body counts. */
const bodySender = ({ caller }: FastifyRequest): string => caller?.actor ?? '';

/** Returns how bodies are read: their bytes count for the caller from their arrival until the response has closed. */
function receiver(app: FastifyInstance, held: BodyMemoryLimit): Receive {
  app.addHook('preParsing', (request, reply, _payload, done) => {
    const hasBody = request.headers['content-type'] !== undefined;
    if (hasBody) reply.raw.once('close', () => held.remove(bodySender(request), request.heldBytes));
    done();
  });
  return (request, payload, done) => {
    const onBytes = (bytes: number) => {
      request.heldBytes += bytes;
      return held.add(bodySender(request), bytes);
    };
    receiveBody(payload, request.routeOptions.bodyLimit, onBytes, done);
  };
}

function takeJsonOnly(app: FastifyInstance, receive: Receive, held: BodyMemoryLimit): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(['application/json', mergePatch], (request, payload, done) => {
    receive(request, payload, (error, body) => {
      try {
        if (error) throw error;
        const isPatch = request.method === 'PATCH';
        if (!isPatch && request.headers['content-type']?.toLowerCase().startsWith(mergePatch))
          throw new Refused(unsupportedType);
        checkCodings(request.headers);
        const parsed = held.timed(bodySender(request), body.length, () => parseBody(body));
        done(null, parsed);
      } catch (thrown) {
        done(thrown as Error);
      }
    });
  });
}

/** Returns the path and query of a request target in absolute form, which servers must accept (RFC 9112, 3.2.2). */
function originForm({ url = '/' }: IncomingMessage): string {
  return url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*\/?/i, '/');
}

function errorHandler(
  { logger, metrics, auditRecords }: AppDependencies,
  keepConnection: (reply: FastifyReply) => void,
) {
  const countShed = shedSummary(logger);
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const refusal = toRefusal(error) ?? internalError;
    const cause = refusal === internalError ? error : undefined;
    if (error instanceof Shed) countShed();
    else logRefused(logger, request, request.caller?.actor, refusal.code, { error: cause });
    keepConnection(reply);
    metrics.refused(refusal.code);
    auditRecords.refused(request, refusal.code);
    return sendRefusal(reply, refusal, error instanceof Refused ? error.headers : undefined);
  };
}

/** Logs requests that were shed in one line a second: a line for each would add to the load, and none has been examined. */
function shedSummary(logger: Logger): () => void {
  let requests = 0;
  const log = (): void => {
    logger.warn({ requests }, 'requests were shed within a second');
    requests = 0;
  };
  return () => {
    if (requests++ === 0) setTimeout(log, 1000).unref();
  };
}

function logAnswer(logger: Logger, request: FastifyRequest, reply: FastifyReply): void {
  logger.debug(
    {
      request_id: request.id,
      actor: request.caller?.actor,
      method: request.method,
      route: request.routeOptions.url,
      status: reply.statusCode,
      duration_ms: Math.round(reply.elapsedTime),
    },
    'answered',
  );
}
