import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { knockUntil } from '../../tests/support/knock.ts';

const fixture = fileURLToPath(new URL('./test/serving.fixture.ts', import.meta.url));

async function start(): Promise<{ child: ChildProcess; port: number }> {
  const child = fork(fixture, { env: { ...process.env, LOG_LEVEL: 'warn' }, silent: true });
  const [port] = (await once(child, 'message')) as [number];
  return { child, port };
}

function stop(child: ChildProcess): Promise<unknown> {
  child.kill('SIGTERM');
  return once(child, 'exit');
}

test('new connections are answered or refused while a process stops, and none is reset', {
  timeout: 240_000,
}, async () => {
  // contract: envelope-36
  for (let round = 0; round < 10; round++) {
    const { child, port } = await start();
    const answers = await knockUntil(port, () => stop(child));
    expect(Object.keys(answers).sort()).toEqual(['HTTP/1.1 200', 'refused']);
  }
});

test('a connection that sends no request does not keep the process', async () => {
  const { child, port } = await start();
  const [silent, half] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
  await Promise.all([silent, half].map((socket) => once(socket, 'connect')));
  half.write('GET / HTTP/1.1\r\n');
  const logged = text(child.stdout as NonNullable<typeof child.stdout>);
  const ended = Promise.all([silent, half].map((socket) => once(socket, 'close')));
  await stop(child);
  await ended;
  expect(await logged).toBe('');
});
