import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:https';

/**
 * Terminates TLS in front of a gateway and hides the original host name and scheme from it. Listens on 127.0.0.1.
 * Resolves with the function that stops it.
 */
export async function startTlsFront({
  port,
  target,
  cert,
  key,
}: {
  port: number;
  target: string;
  cert: string;
  key: string;
}): Promise<() => Promise<void>> {
  const { hostname, port: targetPort, host } = new URL(target);
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (incoming, outgoing) => {
    const forwarded = request(
      {
        hostname,
        port: targetPort,
        method: incoming.method,
        path: incoming.url,
        headers: { ...incoming.headers, host },
      },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    forwarded.once('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
}
