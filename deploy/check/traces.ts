import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { oneOfEach, startCluster } from '../../tests/faults/cluster.ts';
import { createRandom } from '../../tests/faults/random.ts';
import { Api } from '../../tests/support/client.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { readTopic } from '../../tests/support/kafka.ts';
import { startChild } from '../../tools/local/child.ts';
import { PROJECT } from '../../tools/local/local-dir.ts';
import { logTail } from '../../tools/local/log-file.ts';
import { freePort } from '../../tools/local/ports.ts';
import { probeStatus } from '../../tools/local/ready.ts';
import { type Check, expect, type Part, prepare } from './check.ts';

const buildMs = 2 * 60 * 60_000;
const startMs = 120_000;
/** The batch processor of the collector waits 200 ms, the exporter of a process up to 5 s. */
const arrivesMs = 60_000;
const found = 'Jaeger shows one trace from the HTTP request to the event';

/**
 * Sends a trace through the collector, with the delivered configuration, to Jaeger. Jaeger 2 is an OpenTelemetry
 * Collector, so one program runs as both.
 */
export const traces: Part = {
  name: 'traces',
  needsEngine: false,
  planted: { defect: 'a collector that forwards to nobody', foundBy: found, says: /^the trace has no spans/ },
  limitMs: buildMs,
  async run(check) {
    const prepared = await prepare(check, { part: 'traces', script: 'jaeger.sh', timeoutMs: buildMs });
    if (prepared === undefined) return;
    const { otlpUrl, apiUrl } = await check.step('the collector and Jaeger start', () => startBoth(check, prepared));
    const cluster = await check.step('a bank that sends its traces to the collector', async () => {
      const made = await startCluster(join(check.dir, 'traced'), createRandom('traces'), async (context) => ({
        ...(await oneOfEach(context)),
        env: { OTEL_EXPORTER_OTLP_ENDPOINT: otlpUrl },
      }));
      check.onEnd(() => made.stop());
      return made;
    });
    await check.step(found, async () => {
      const api = new Api(
        () => cluster.gateways[0]?.baseUrl ?? '',
        () => ({ 'x-api-key': cluster.apiKey }),
      );
      const { account_id } = await api.newAccount();
      const trace = randomBytes(16).toString('hex');
      const deposit = { account_id, transaction_type: 'Deposit', amount: 3 };
      const headers = { traceparent: `00-${trace}-${'c'.repeat(16)}-01`, 'x-request-id': trace };
      const { status } = await api.post('/transactions', deposit, headers);
      expect(status === 201, `the deposit was answered ${status}`);
      let seen: string[] = [];
      const wanted = [
        'gateway: POST /transactions',
        'gateway: request create_transaction',
        'ledger: process create_transaction',
        'ledger: batch',
        'ledger: publish replies',
        'ledger: publish transactions',
      ];
      await eventually(async () => {
        seen = await readSpans(apiUrl, trace);
        return wanted.every((span) => seen.includes(span));
      }, arrivesMs).catch(() => {
        throw new Error(`the trace has ${seen.length === 0 ? 'no spans' : `only ${seen.join(', ')}`}`);
      });
      const events = await readTopic(
        { kafka_brokers: cluster.brokers, topic_prefix: cluster.topicPrefix },
        'transactions',
      );
      const event = events.find((event) => event.headers['request-id'] === trace);
      expect(event?.headers['traceparent']?.split('-')[1] === trace, 'the event does not name the trace');
      return seen.join(', ');
    });
  },
};

async function startBoth(check: Check, program: string): Promise<{ otlpUrl: string; apiUrl: string }> {
  const [collector, storage, api, grpc] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const at = (port: number) => `127.0.0.1:${port}`;
  const file = join(check.dir, 'jaeger.json');
  writeFileSync(
    file,
    JSON.stringify({
      receivers: { otlp: { protocols: { grpc: { endpoint: at(storage) } } } },
      exporters: { jaeger_storage_exporter: { trace_storage: 'memory' } },
      extensions: {
        jaeger_storage: { backends: { memory: { memory: { max_traces: 1000 } } } },
        jaeger_query: {
          storage: { traces: 'memory' },
          http: { endpoint: at(api) },
          grpc: { endpoint: at(grpc) },
        },
      },
      service: {
        extensions: ['jaeger_storage', 'jaeger_query'],
        pipelines: { traces: { receivers: ['otlp'], exporters: ['jaeger_storage_exporter'] } },
        telemetry: { metrics: { level: 'none' } },
      },
    }),
  );
  const start = async (name: string, args: string[], url: string) => {
    const log = join(check.dir, `${name}.log`);
    const child = startChild({ name, command: program, args, log, marker: args[0] ?? '' });
    check.onEnd(() => child.stop(10_000));
    await eventually(async () => {
      assert(child.running(), `${name} ended: ${logTail(log)}`);
      return typeof (await probeStatus({ url })) === 'number';
    }, startMs);
  };
  await start('jaeger', [`--config=${file}`], `http://${at(api)}/api/services`);
  const delivered = join(PROJECT, 'deploy/observability/otel-collector.yaml');
  const settings = [
    `receivers.otlp.protocols.http.endpoint=${at(collector)}`,
    `exporters.otlp.endpoint=${at(check.selfTest ? await freePort() : storage)}`,
    'service.telemetry.metrics.level=none',
  ];
  const otlpUrl = `http://${at(collector)}`;
  const args = [`--config=${delivered}`, ...settings.map((setting) => `--set=${setting}`)];
  await start('collector', args, otlpUrl);
  return { otlpUrl, apiUrl: `http://${at(api)}` };
}

/** Returns "service: name" of each span of a trace in Jaeger. */
async function readSpans(apiUrl: string, trace: string): Promise<string[]> {
  const response = await fetch(`${apiUrl}/api/traces/${trace}`);
  const { data } = (await response.json()) as {
    data?: {
      spans: { operationName: string; processID: string }[];
      processes: Record<string, { serviceName: string }>;
    }[];
  };
  return (data ?? []).flatMap(({ spans, processes }) =>
    spans.map(
      ({ operationName, processID }) =>
        `${processes[processID]?.serviceName.replace('core-banking-', '')}: ${operationName}`,
    ),
  );
}
