import type { FastifyReply, FastifyRequest } from 'fastify';
import { refusal } from '#libs/contracts/errors.ts';
import type { Clock } from '#libs/service/clock.ts';
import type { Admission } from './admission.ts';
import { Refused } from './errors.ts';
import type { GatewayMetrics } from './gateway-metrics.ts';

export interface DoorDependencies {
  admission: Pick<Admission, 'refuses' | 'hold'>;
  clock: Pick<Clock, 'check'>;
  metrics: Pick<GatewayMetrics, 'turnedAway'>;
}

const largestBody = 64 * 1024;
// Made once: under overload every microsecond of a refusal counts.
const overloaded = new Refused(refusal('service_unavailable', 'too many requests at once; nothing was executed, the request can be repeated'));
const wrongClock = new Refused(refusal('service_unavailable', "this gateway's clock is not right; nothing was executed, the request can be repeated"));

/**
 * What is turned away before anything of it is looked at, credentials included: every request while too much comes at once, and
 * writes while the clock of this host is wrong. Such an answer holds no data, and must cost as little as can be (decision 12).
 */
export function createDoor({ admission, clock, metrics }: DoorDependencies): (request: FastifyRequest, reply: FastifyReply) => Refused | undefined {
  return (request, reply) => {
    const { method, headers } = request.raw;
    const isWrite = method !== 'GET' && method !== 'HEAD';
    const reason = isWrite && !clock.check().ok ? 'clock' : admission.refuses(request.routeOptions.config.endpoint);
    if (reason !== undefined) {
      metrics.turnedAway(reason);
      return reason === 'clock' ? wrongClock : overloaded;
    }
    if (!isWrite) return undefined;
    const length = Number(headers['content-length'] ?? (headers['transfer-encoding'] === undefined ? 0 : largestBody));
    if (length > 0) admission.hold(Math.min(length, largestBody), reply.raw);
    return undefined;
  };
}
