import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * What a new connection got: the status line of its answer; `refused` if nobody listens; otherwise what happened to the
 * connection, which a client must never see.
 */
export function knock(port: number, waitMs = 0, headers = ''): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    let isConnected = false;
    const status = () => /^HTTP\/1\.1 \d{3}/.exec(received)?.[0];
    const socket = connect(port, '127.0.0.1', () => {
      isConnected = true;
      setTimeout(() => socket.write(`GET / HTTP/1.1\r\nHost: x\r\n${headers}\r\n`), waitMs);
    });
    socket.on('data', (chunk) => {
      received += String(chunk);
      if (!received.includes('\r\n\r\n')) return;
      socket.destroy();
      resolve(status() ?? received);
    });
    socket.on('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'ECONNREFUSED' && !isConnected ? 'refused' : String(error.code)),
    );
    socket.on('close', () => resolve(status() ?? 'closed without an answer'));
  });
}

/**
 * Opens one connection after the other, in eight lanes of which two wait before they send, until `stop` has resolved.
 * Returns how many got which answer.
 */
export async function knockUntil(
  port: number,
  stop: () => Promise<unknown>,
  headers?: string,
): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  let isOver = false;
  const lanes = Array.from({ length: 8 }, async (_, lane) => {
    while (!isOver) {
      const answer = await knock(port, lane < 2 ? 20 : 0, headers);
      answers[answer] = (answers[answer] ?? 0) + 1;
      if (answer === 'refused') return;
    }
  });
  await sleep(100);
  await stop();
  isOver = true;
  await Promise.all(lanes);
  return answers;
}
