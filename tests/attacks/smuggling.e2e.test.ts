import { beforeAll, describe, expect, it } from 'vitest';
import type { RestAccount } from '../support/client.ts';
import { checkErrorBody, exchange, expectNothingDone, type RawAnswer } from '../support/hostile.ts';
import { useBank } from '../support/world.ts';

/**
 * Attacks on HTTP/1.1 framing in addition to tests/bad-input/http: each sends one request whose
 * rest could be interpreted as another. A request must never get two responses, and a body must
 * never be read as a request; if the end of a body is ambiguous, the connection is closed (RFC
 * 9112, 6.1, 6.3, 7.1).
 */
const world = useBank();
let account: RestAccount;
let known = '';
beforeAll(async () => {
  account = await world.api.newAccount({ initial_deposit: 100 });
  known = `Host: ${new URL(world.api.baseUrl).host}\r\nx-api-key: ${world.bank.api_key}\r\n`;
});
/** The request that must never be executed. */
const hidden = () => {
  const body = JSON.stringify({ account_id: account.account_id, transaction_type: 'Withdrawal', amount: 1 });
  return `POST /transactions HTTP/1.1\r\n${known}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
};
const send = (bytes: string, quietMs = 300) => exchange(world.api.baseUrl, bytes, { quietMs });
/** Ends the pipeline: the server closes the connection after this request, so no further responses can follow. */
const last = (target = '/alsonowhere') => `GET ${target} HTTP/1.1\r\nConnection: close\r\n${known}\r\n`;
const statuses = (answers: RawAnswer[]) => answers.map(({ status }) => status);
const post = (headers: string, rest: string, who = known, path = '/nowhere') =>
  `POST ${path} HTTP/1.1\r\n${who}Content-Type: application/json\r\n${headers}\r\n${rest}`;
const nobody = 'Host: x\r\n';

describe('an invalid body after a refused request gets no separate response', () => {
  expectNothingDone(world);
  const broken: [string, string, string][] = [
    ['an invalid chunk size', 'Transfer-Encoding: chunked\r\n', 'zz\r\n'],
    ['a chunk size of 17 digits', 'Transfer-Encoding: chunked\r\n', `${'f'.repeat(17)}\r\n`],
    ['a chunk without its CRLF', 'Transfer-Encoding: chunked\r\n', '2\r\n{}X\r\n0\r\n\r\n'],
    ['a chunk size after a blank', 'Transfer-Encoding: chunked\r\n', ' 2\r\n{}\r\n0\r\n\r\n'],
    ['a bare LF after a size', 'Transfer-Encoding: chunked\r\n', '2\n{}\r\n0\r\n\r\n'],
    ['a bare CR in an extension', 'Transfer-Encoding: chunked\r\n', '2;a=\rb\r\n{}\r\n0\r\n\r\n'],
    ['an LF in an extension', 'Transfer-Encoding: chunked\r\n', '2;a\n{}\r\n0\r\n\r\n'],
    ['extensions of 20 KB', 'Transfer-Encoding: chunked\r\n', `2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`],
    ['a trailer without a colon', 'Transfer-Encoding: chunked\r\n', '2\r\n{}\r\n0\r\nnonsense\r\n\r\n'],
    [
      'lengths as trailers',
      'Transfer-Encoding: chunked\r\n',
      '2\r\n{}\r\n0\r\nContent-Length: 500\r\nTransfer-Encoding: gzip\r\n\r\n',
    ],
    ['a folded trailer', 'Transfer-Encoding: chunked\r\n', '2\r\n{}\r\n0\r\nA: b\r\n c: d\r\n\r\n'],
  ];

  it.each(
    broken.flatMap(
      ([name, headers, rest]) =>
        [
          [`${name}, unknown caller`, headers, rest, false],
          [`${name}, unknown path`, headers, rest, true],
        ] as const,
    ),
  )('%s', async (_, headers, rest, isKnown) => {
    const { answers, closed } = await send(post(headers, rest + hidden(), isKnown ? known : nobody), 3_000);
    expect([answers.length, closed]).toEqual([1, true]);
    expect([400, isKnown ? 404 : 401]).toContain(answers[0]?.status);
    checkErrorBody(answers[0]?.status ?? 0, answers[0]?.body ?? '');
  });

  it.each([
    ['two lengths', 'Content-Length: 2\r\nContent-Length: 3\r\n'],
    ['length and chunks', 'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n'],
    ['chunks and length', 'Transfer-Encoding: chunked\r\nContent-Length: 2\r\n'],
    ['identity', 'Transfer-Encoding: identity\r\n'],
    ['chunked, then identity', 'Transfer-Encoding: chunked, identity\r\n'],
    ['obs-fold', 'Transfer-Encoding:\r\n chunked\r\n'],
    ['a blank before the colon', 'Transfer-Encoding : chunked\r\n'],
    ['a tab before the colon', 'Transfer-Encoding\t: chunked\r\n'],
    ['a NUL in a value', 'X: a\u0000b\r\n'],
    ['a NUL in a name', 'X\u0000: b\r\n'],
    ['a bare LF', 'Content-Length: 0\nTransfer-Encoding: chunked\r\n'],
    ['a bare CR', 'Content-Length: 0\rTransfer-Encoding: chunked\r\n'],
    ['a vertical tab', 'Transfer-Encoding: \u000bchunked\r\n'],
  ])('after ambiguous framing nothing more is read: %s', async (_, headers) => {
    // asvs: 4.2.1
    for (const who of [known, nobody]) {
      const { answers, closed } = await send(post(headers, `2\r\n{}\r\n0\r\n\r\n${hidden()}`, who), 3_000);
      expect([answers.length, closed]).toEqual([1, true]);
      // Unauthenticated requests and unknown paths may be answered before the body is read.
      expect([400, who === known ? 404 : 401]).toContain(answers[0]?.status);
    }
  });
});

describe('unusual but unambiguous framing', () => {
  expectNothingDone(world);

  it.each([
    ['CHUNKED', 'Transfer-Encoding: CHUNKED\r\n', '2\r\n{}\r\n0\r\n\r\n'],
    ['a tab before it', 'Transfer-Encoding:\tchunked\r\n', '2\r\n{}\r\n0\r\n\r\n'],
    ['blanks around it', 'Transfer-Encoding:   chunked  \r\n', '2\r\n{}\r\n0\r\n\r\n'],
    ['leading zeros', 'Transfer-Encoding: chunked\r\n', '0002\r\n{}\r\n000\r\n\r\n'],
    ['an extension', 'Transfer-Encoding: chunked\r\n', '2;a="b;c"\r\n{}\r\n0;x\r\n\r\n'],
    [
      'trailers',
      'Transfer-Encoding: chunked\r\nTrailer: x-a\r\n',
      '2\r\n{}\r\n0\r\nX-A: b\r\nHost: evil.example\r\n\r\n',
    ],
    ['a request as its body', '', ''],
  ])('%s: two requests get two responses', async (_, headers, body) => {
    const first = body === '' ? post(`Content-Length: ${hidden().length}\r\n`, hidden()) : post(headers, body);
    const { answers } = await send(first + last(), 3_000);
    expect(statuses(answers)).toEqual([404, 404]);
  });

  it('credentials in a trailer are ignored', async () => {
    const { answers } = await send(
      post('Transfer-Encoding: chunked\r\n', `2\r\n{}\r\n0\r\nx-api-key: ${world.bank.api_key}\r\n\r\n`, nobody),
    );
    expect(statuses(answers)).toEqual([401]);
  });

  it('a request pipelined after a refused one is authenticated separately', async () => {
    const anonymous = post('Content-Length: 2\r\n', '{}', nobody, '/transactions');
    expect(statuses((await send(anonymous + anonymous + last('/'), 3_000)).answers)).toEqual([401, 401, 200]);
  });
});

describe('target and Host', () => {
  expectNothingDone(world);
  const get = (target: string, headers = known) => `GET ${target} HTTP/1.1\r\n${headers}\r\n`;

  it.each(['http://127.0.0.1:1/', 'https://evil.example/', 'http://evil.example', 'HTTP://x@evil.example:80/'])(
    'an absolute target is served locally and never fetched: %s',
    async (target) => {
      const { answers } = await send(get(target));
      expect([statuses(answers), JSON.parse(answers[0]?.body ?? '{}')]).toEqual([
        [200],
        expect.objectContaining({ message: expect.stringMatching(/^the service is running/) }),
      ]);
      expect(statuses((await send(get(target, nobody))).answers)).toEqual([401]);
    },
  );

  it('no response contains a foreign Host', async () => {
    const evil = known.replace(
      /^Host: .*\r\n/,
      'Host: evil.example\r\nX-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: gopher\r\nForwarded: host=evil.example\r\n',
    );
    for (const path of ['/', '/clients?limit=1', '/nowhere', `/accounts/${account.account_id}`, '/docs']) {
      const { answers } = await send(get(path, evil));
      expect(answers).toHaveLength(1);
      expect(`${answers[0]?.head}${answers[0]?.body}`).not.toContain('evil.example');
    }
  });

  it.each(['h2c', 'HTTP/2.0', 'websocket'])(
    'an upgrade to %s is ignored, and the following bytes are not interpreted differently',
    async (protocol) => {
      const { answers } = await send(
        get(
          '/',
          `${known}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: ${protocol}\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n`,
        ) + get('/nowhere'),
      );
      // Node reads nothing after one of these. The bytes that it reads before are an ordinary request.
      expect(['200', '200,404']).toContain(String(statuses(answers)));
    },
  );

  it('the HTTP/2 preface is not a request', async () => {
    const { answers, closed } = await send(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${'\u0000'.repeat(9)}${hidden()}`, 3_000);
    expect([statuses(answers), closed]).toEqual([[400], true]);
  });

  it('thousands of headers are refused, including those beyond Node’s limit', async () => {
    for (const count of [1_001, 2_500, 8_000]) {
      const { answers } = await send(get('/', `${known}${'a: b\r\n'.repeat(count)}x-api-key: wrong\r\n`));
      expect([401, 431]).toContain(answers[0]?.status);
      expect(answers).toHaveLength(1);
    }
  });
});
