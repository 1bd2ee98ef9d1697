import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createIssuer, SignInFailed } from './issuer.ts';

/** An issuer that fails. tests/dashboard/dashboard.e2e.test.ts tests sign-in with a working one. */
let server: Server | undefined;
const sockets = new Set<Socket>();
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  server?.close();
});

/** A server that answers every request with `response`, or never if there is none. */
async function issuerThatSays(response?: string, timeoutMs = 10_000) {
  server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    if (response !== undefined) socket.once('data', () => socket.end(response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return createIssuer({
    issuer: `http://127.0.0.1:${port}`,
    clientId: 'dashboard',
    clientSecret: 'a secret',
    redirectUri: 'http://bank.example/admin/callback',
    scope: 'openid api://bank/.default',
    timeoutMs,
  });
}

const answer = (body: string) =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`;
const begun = { verifier: 'v'.repeat(43), state: 'state', nonce: 'nonce' };
const callback = new URL('http://bank.example/admin/callback?code=x&state=state');

describe('an unusable issuer counts as unavailable, for sign-in and callback', () => {
  it.each([
    ['never answers', undefined],
    ['is no issuer', 'HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'],
    ['answers nonsense', answer('<html>')],
    [
      'says to be another one',
      answer(
        JSON.stringify({ issuer: 'http://elsewhere.example', authorization_endpoint: 'http://elsewhere.example/auth' }),
      ),
    ],
  ])('because it %s', async (_reason, response) => {
    const issuer = await issuerThatSays(response, 200);
    await expect(issuer.begin()).rejects.toMatchObject({ name: 'SignInFailed', fault: 'issuer_away' });
    await expect(issuer.finish(callback, begun)).rejects.toMatchObject({ name: 'SignInFailed', fault: 'issuer_away' });
  });

  it('and is tried again the next time', async () => {
    const issuer = await issuerThatSays(answer('<html>'));
    await expect(issuer.begin()).rejects.toBeInstanceOf(SignInFailed);
    const port = (server?.address() as AddressInfo).port;
    const metadata = {
      issuer: `http://127.0.0.1:${port}`,
      authorization_endpoint: `http://127.0.0.1:${port}/auth`,
      token_endpoint: `http://127.0.0.1:${port}/token`,
      jwks_uri: `http://127.0.0.1:${port}/jwks`,
    };
    server
      ?.removeAllListeners('connection')
      .on('connection', (socket) => void socket.once('data', () => socket.end(answer(JSON.stringify(metadata)))));
    const { url, state, nonce } = await issuer.begin();
    const asked = new URL(url);
    expect(asked.origin + asked.pathname).toBe(`http://127.0.0.1:${port}/auth`);
    expect(Object.fromEntries(asked.searchParams)).toMatchObject({
      client_id: 'dashboard',
      response_type: 'code',
      redirect_uri: 'http://bank.example/admin/callback',
      code_challenge_method: 'S256',
      prompt: 'login',
      scope: 'openid api://bank/.default',
      state,
      nonce,
    });
  });
});

describe('with a working issuer', () => {
  async function working() {
    const issuer = await issuerThatSays();
    const origin = `http://127.0.0.1:${(server?.address() as AddressInfo).port}`;
    const metadata = {
      issuer: origin,
      authorization_endpoint: `${origin}/auth`,
      token_endpoint: `${origin}/token`,
      jwks_uri: `${origin}/jwks`,
    };
    server
      ?.removeAllListeners('connection')
      .on('connection', (socket) => void socket.once('data', () => socket.end(answer(JSON.stringify(metadata)))));
    await issuer.begin();
    return issuer;
  }

  it('its refusal is a refusal', async () => {
    const refused = new URL('http://bank.example/admin/callback?error=access_denied&state=state');
    await expect((await working()).finish(refused, begun)).rejects.toMatchObject({ fault: 'refused' });
  });

  it.each(['code=x&state=another', 'code=x', 'state=state'])(
    'a response to another request is refused: %s',
    async (query) => {
      await expect(
        (await working()).finish(new URL(`http://bank.example/admin/callback?${query}`), begun),
      ).rejects.toMatchObject({ fault: 'mismatch' });
    },
  );
});
