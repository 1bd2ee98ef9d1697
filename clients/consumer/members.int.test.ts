import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../tests/support/eventually.ts';
import type { Gap } from './index.ts';
import { brokerRetry } from './session.ts';
import { openProxy } from './test/proxy.fixture.ts';
import {
  brokers,
  completed,
  consumer,
  event,
  range,
  send,
  silent,
  topicPrefix,
  useTopics,
} from './test/topics.fixture.ts';

useTopics();

describe('members of a group', () => {
  it('a stop lets a long handler finish without a rebalance, and the next member continues after it', async () => {
    await send(...range(3).map((n) => event('a', n, 0)));
    const done: string[] = [];
    let begun = 0;
    let joins = 0;
    const handle = async ({ id }: { id: string }) => {
      begun += 1;
      await new Promise((resolve) => {
        setTimeout(resolve, 6_000);
      });
      done.push(id);
    };
    const first = consumer({
      handlers: { [completed]: handle },
      sessionTimeoutMs: 4_000,
      logger: { ...silent, info: (_, message) => void (joins += Number(message.startsWith('joined'))) },
    });
    await first.start();
    await eventually(async () => begun === 1);
    // A member also joins again when the leaders of a new topic become known, before the first event.
    joins = 0;
    expect(first.health()).toMatchObject({ ok: true, alive: true });
    await first.stop();
    expect([done, begun, joins]).toEqual([['a-1'], 1, 0]);
    expect(first.health().ok).toBe(false);
    await consumer({ handlers: { [completed]: ({ id }) => void done.push(id) } }).start();
    await eventually(async () => done.length >= 3);
    expect(done).toEqual(['a-1', 'a-2', 'a-3']);
  });

  it('while members join and leave, no event is lost or out of order', async () => {
    const accounts = range(12);
    const sequences = range(25);
    const sendSequences = (wanted: number[]) =>
      send(...wanted.flatMap((n) => accounts.map((account) => event(String(account), n, account % 4))));
    await sendSequences(sequences.slice(0, 10));
    const done: { account: string; sequence: number; by: number }[] = [];
    const gaps: Gap[] = [];
    const member = (by: number) =>
      consumer({
        handlers: {
          [completed]: async ({ data }) => {
            await new Promise((resolve) => {
              setTimeout(resolve, 10);
            });
            done.push({ account: data.transaction.account_id, sequence: data.sequence, by });
          },
        },
        onGap: (gap) => void gaps.push(gap),
        parallelism: 4,
      });
    const [first, second] = [member(1), member(2)];
    await first.start();
    await eventually(async () => done.length > 20);
    await second.start();
    await sendSequences(sequences.slice(10));
    await eventually(async () => done.some(({ by }) => by === 2));
    await first.stop();
    await eventually(
      async () =>
        new Set(done.map(({ account, sequence }) => `${account} ${sequence}`)).size ===
        accounts.length * sequences.length,
      30_000,
    );
    for (const [account, events] of Map.groupBy(done, (event) => event.account))
      expect([...new Set(events.map(({ sequence }) => sequence))], account).toEqual(sequences);
    expect(gaps).toEqual([]);
    expect(new Set(done.map(({ by }) => by)).size).toBe(2);
  });

  it('while the group waits for a handler, all members are alive and keep their sessions', async () => {
    const begun: string[] = [];
    const done: string[] = [];
    const ends: object[] = [];
    const released = Promise.withResolvers<void>();
    const member = () =>
      consumer({
        handlers: {
          [completed]: async ({ id }) => {
            begun.push(id);
            await released.promise;
            done.push(id);
          },
        },
        sessionTimeoutMs: 4_000,
        logger: {
          ...silent,
          warn: (fields, message) => void (message.startsWith('the consumer ended') && ends.push(fields)),
        },
      });
    const members = [member(), member(), member()] as const;
    await members[0].start();
    await members[1].start();
    await send(event('a', 1, 0));
    await eventually(async () => begun.length === 1);
    const third = members[2].start();
    // Longer than two session timeouts, after which a silent session ends outside of a rebalance.
    for (const endMs = performance.now() + 10_000; performance.now() < endMs; await sleep(100))
      expect(members.map((one) => one.health())).toEqual(members.map(() => ({ ok: true, alive: true, standing: [] })));
    released.resolve();
    await third;
    expect([begun, done, ends]).toEqual([['a-1'], ['a-1'], []]);
  });

  it('a member keeps its membership while brokers are unavailable, is back within 5 s, and recovers from dead connections', async () => {
    const proxy = await openProxy(brokers);
    const done: string[] = [];
    const ends: string[] = [];
    const logger = {
      ...silent,
      warn: (fields: object, message: string) =>
        void (message.startsWith('the consumer ended') && ends.push(String((fields as { err?: Error }).err?.message))),
    };
    await send(event('a', 1, 0));
    const made = consumer({
      handlers: { [completed]: ({ id }) => void done.push(id) },
      kafka: { socketFactory: proxy.socketFactory },
      logger,
    });
    await made.start();
    await eventually(async () => done.length === 1);
    await proxy.close();
    await send(event('a', 2, 0));
    // Longer than two session timeouts, after which a session ends if it receives nothing although the brokers respond.
    await sleep(15_000);
    await eventually(async () => !made.health().ok);
    expect(made.health()).toMatchObject({ alive: true, reason: expect.stringMatching(/^the brokers are unreachable/) });
    expect(done).toEqual(['a-1']);
    await proxy.reopen();
    await eventually(async () => done.includes('a-2'), 5_000 * Number(process.env['FAULTS_SLOWNESS'] ?? 1));
    // A new session would have to wait for the end of its previous membership. The session's own attempts are
    // at most this far apart.
    expect(ends).toEqual([]);
    expect(brokerRetry.maxRetryTime).toBeLessThanOrEqual(500);
    proxy.stall();
    await send(event('a', 3, 0));
    await eventually(async () => done.includes('a-3'), 60_000);
    await proxy.close();
    expect(done).toEqual(['a-1', 'a-2', 'a-3']);
    expect(ends.at(-1)).toMatch(/^nothing received for \d+ ms/);
  });
});

describe('after a stop, the process ends', () => {
  const program = `import net from 'node:net';
    const { createConsumer } = await import(process.env.PACKAGE);
    const { port, stopMs, ...options } = JSON.parse(process.env.OPTIONS);
    const consumer = createConsumer({
      ...options,
      kafka: {
        brokers: ['127.0.0.1:' + port],
        socketFactory: ({ onConnect }) => net.connect(port, '127.0.0.1', onConnect),
      },
      handlers: {
        '${completed}': () => {
          console.log('handling');
          return new Promise(() => undefined);
        },
      },
    });
    console.log('starting');
    void consumer.start().then(() => console.log('joined'));
    setInterval(() => console.log(consumer.health().reason), 100).unref();
    process.stdin.resume().once('end', () => void consumer.stop({ timeoutMs: stopMs }));`;

  it.each([
    ['if the brokers are unreachable and it has never joined', 'starting', 30_000],
    ['if the brokers are unreachable after it has joined', 'joined', 30_000],
    ['if a handler never returns', 'handling', 100],
  ])('%s', async (_, line, stopMs) => {
    const proxy = await openProxy(brokers);
    onTestFinished(() => proxy.close().then(() => undefined));
    if (line === 'starting') await proxy.close();
    if (line === 'handling') await send(event('a', 1, 0));
    const groupId = `${topicPrefix}group`;
    const options = { groupId, topicPrefix, sessionTimeoutMs: 4_000, port: proxy.port, stopMs };
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      env: { ...process.env, PACKAGE: import.meta.resolve('./index.ts'), OPTIONS: JSON.stringify(options) },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const exited = once(child, 'exit');
    let output = '';
    child.stdout.on('data', (chunk) => void (output += chunk));
    await eventually(async () => output.includes(line), 30_000);
    if (line === 'joined') {
      await proxy.close();
      await eventually(async () => output.includes('nothing received'), 30_000);
    }
    child.stdin.end();
    expect(await exited).toEqual([0, null]);
  });
});
