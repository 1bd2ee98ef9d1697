import { describe, expect, it } from 'vitest';
import { corporate, retail } from '../support/client.ts';
import { expectNothingDone, expectRefused, expectViolations, postRaw } from '../support/hostile.ts';
import { useBank } from '../support/world.ts';

/** Hostile input: bodies that are not JSON, or not the JSON that they seem to be. */
const world = useBank();
const { api } = world;
const post = (raw: string | Buffer<ArrayBuffer>, headers: Record<string, string> = {}) =>
  postRaw(api, '/clients', raw, headers);
/** Returns a valid body with one more member. */
const with_ = (member: string) => `${JSON.stringify(retail()).slice(0, -1)},${member}}`;

describe('bodies that are not JSON: 400 malformed_json', () => {
  expectNothingDone(world);

  it.each([
    '{',
    '}',
    '{"client_type":"Retail"',
    '{"client_type"',
    '{"client_type":',
    '{"a":1',
    '"a',
    '[',
    '[1',
    '{"a":[}',
    '{"a":1]',
    '{"a":1,}',
    '[1,]',
    '{,}',
    '{"a":1,,"b":2}',
    "{'a':1}",
    '{a:1}',
    '{"a":\'x\'}',
    '{"a" 1}',
    '{"a"=1}',
    '{1:1}',
    '{null:1}',
    '{}{}',
    '{} {}',
    '{}x',
    '{};',
    '// x\n{}',
    '/* x */{}',
    '{} // x',
    '{"a":1 /* x */}',
    '# x\n{}',
    '{"a":NaN}',
    '{"a":Infinity}',
    '{"a":-Infinity}',
    '{"a":undefined}',
    '{"a":nul}',
    '{"a":True}',
    '{"a":TRUE}',
    '{"a":0x10}',
    '{"a":010}',
    '{"a":1n}',
    '{"a":`x`}',
    '{"a":"\\x41"}',
    '{"a":"\\u12"}',
    '{"a":"\\u{41}"}',
    '{"a":"\\u00g0"}',
    '{"a":"\\a"}',
    '{"a":"\\',
    '{"a":"line\nbreak"}',
    '{"a":"tab\there"}',
    '{"a":"nul\0"}',
    '{"a":"\u001f"}',
    '{"\n":1}',
    ' ',
    '\t\r\n',
    '\u00a0{}',
    '\u000b{}',
    '\u000c{}',
    '\u2028{}',
    '{}\u2029',
    'client_type=Retail',
    '<client/>',
    '--boundary\r\n',
    'null null',
    '+1',
    '.5',
    '1.',
    '01',
    '-',
    '1e',
    '--1',
  ])('%j', async (raw) => {
    expectRefused(await post(raw), 400, 'malformed_json');
  });

  it.each<[string, number[]]>([
    ['a lone 0xff', [0xff]],
    ['a lone continuation byte', [0x80]],
    ['a truncated sequence', [0xe2, 0x82]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['an overlong NUL', [0xc0, 0x80]],
    ['an overlong three-byte slash', [0xe0, 0x80, 0xaf]],
    ['an encoded surrogate (CESU-8)', [0xed, 0xa0, 0x80]],
    ['beyond U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['a five-byte sequence', [0xf8, 0x88, 0x80, 0x80, 0x80]],
  ])('bytes that are not UTF-8: %s', async (_, bytes) => {
    const [before, after] = with_('"address":"@"').split('@') as [string, string];
    expectRefused(
      await post(Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)])),
      400,
      'malformed_json',
    );
  });

  it.each(['utf16le', 'latin1'] as const)('another encoding: %s', async (encoding) => {
    expectRefused(await post(Buffer.from(with_('"address":"\u00fc"'), encoding)), 400, 'malformed_json');
  });

  it.each([
    ['the same value', '"email":"ada@example.com"'],
    ['another value', '"email":"eve@example.com"'],
    ['an escaped name', '"\\u0065mail":"ada@example.com"'],
    ['an escaped name, another value', '"em\\u0061il":"eve@example.com"'],
    ['in an object', '"address":{"a":1,"a":1}'],
    ['in an object, escaped', '"address":{"a":1,"\\u0061":2}'],
    ['in an object of a list', '"x":[[{"a":[],"a":[]}]]'],
    ['two empty names', '"":1,"":1'],
    ['of an unknown field', '"x":null,"x":null'],
    ['equal objects', '"x":{"a":{}},"x":{"a":{}}'],
  ])('a duplicate key: %s', async (_, member) => {
    expectRefused(await post(with_(member)), 400, 'malformed_json');
  });

  it.each([
    '"address":"\\ud800"',
    '"address":"\\udfff"',
    '"address":"a\\udc00\\ud800b"',
    '"address":"\\ud83d\\u0041"',
    '"address":"\\u0000"',
    '"address":"a\\u0000"',
    '"\\ud800":1',
    '"a\\u0000":1',
    '"address":["\\ud800"]',
    '"address":{"\\udc00":1}',
  ])('lone surrogates and NUL, also in keys: %s', async (member) => {
    expectRefused(await post(with_(member)), 400, 'malformed_json');
  });

  it.each([
    '"__proto__":1',
    '"__proto__":{"email":"x"}',
    '"__proto__":null',
    '"\\u005f_proto__":1',
    '"address":{"__proto__":1}',
    '"x":[{"__proto__":[]}]',
    '"constructor":{"prototype":{"x":1}}',
    '"address":{"constructor":{"prototype":1}}',
  ])('a key that could change a prototype: %s', async (member) => {
    expectRefused(await post(with_(member)), 400, 'malformed_json');
  });

  it.each<[string, (n: number) => string]>([
    ['[', (n) => '['.repeat(n)],
    ['[]', (n) => '['.repeat(n) + ']'.repeat(n)],
    ['{}', (n) => `${'{"a":'.repeat(n)}1${'}'.repeat(n)}`],
    ['[{', (n) => '[{'.repeat(n)],
  ])('10,000 levels of %s', async (_, nest) => {
    expectRefused(await post(nest(10_000)), 400, 'malformed_json');
  });
});

describe('JSON that is not an object: 400', () => {
  expectNothingDone(world);
  const writes = ['/clients', '/accounts', '/transactions', '/transfers', '/admin/api-keys'];

  it.each(['[]', '[{}]', '"{}"', 'true', 'false', 'null', '0', '-1.5e3', '12345678901234567890'])(
    '%s is not an object',
    async (raw) => {
      for (const path of writes) {
        const { errors } = expectRefused(await postRaw(api, path, raw), 400, 'validation_failed');
        // A body whose fields depend on client_type may be refused because of the missing client_type.
        expect(errors?.map(({ field }) => field)).toEqual([
          path === '/clients' && errors?.[0]?.field === 'client_type' ? 'client_type' : '',
        ]);
      }
    },
  );

  it('a missing body', async () => {
    for (const path of writes) expectRefused(await api.send('POST', path), 400, 'validation_failed');
    for (const path of writes) expectRefused(await postRaw(api, path, ''), 400, 'validation_failed');
  });

  it.each([
    'constructor',
    'prototype',
    'toString',
    'valueOf',
    'hasOwnProperty',
    'isPrototypeOf',
    '__defineGetter__',
    'toJSON',
    'then',
    'length',
    '0',
    '',
    ' ',
    'Email',
    'email ',
    'EMAIL',
    'email\\u200b',
    '\\u0435mail',
    'text',
    'value',
    'isLosslessNumber',
    '$ne',
    '\\u202e',
    'a\\nb',
    "'; drop table clients;--",
  ])('refuses an unknown field by name: %s', async (name) => {
    expectViolations(await post(with_(`"${name}":1`)), [[JSON.parse(`"${name}"`) as string, 'unknown_field']]);
  });

  it('refuses thousands of unknown fields, and one with a very long name', async () => {
    const { errors } = expectRefused(
      await post(with_(Array.from({ length: 5000 }, (_, i) => `"f${i}":0`).join(','))),
      400,
      'unknown_field',
    );
    expect(errors?.length).toBeGreaterThanOrEqual(100);
    const long = expectRefused(await post(with_(`"${'x'.repeat(60_000)}":1`)), 400, 'unknown_field');
    expect(JSON.stringify(long).length).toBeLessThan(5000);
  });

  it.each([2, 29, 30, 31, 100, 1000, 4000, 5500, 6000, 6500, 7000, 7500, 8000, 9000, 12_000, 20_000, 32_000])(
    '%i levels',
    async (levels) => {
      // asvs: 15.2.2
      const nested = '['.repeat(levels - 1) + ']'.repeat(levels - 1);
      expectRefused(await post(`{"client_type":${nested}}`), 400, levels > 30 ? 'malformed_json' : 'validation_failed');
    },
  );
});

describe('size and content type of the body', () => {
  const padded = (bytes: number) => JSON.stringify(corporate()).padEnd(bytes, ' ');

  it('accepts 64 KiB; one byte more is 413', async () => {
    expect((await post(padded(65_536))).status).toBe(201);
    expectRefused(await post(padded(65_537)), 413, 'body_too_large');
    expectRefused(await post(padded(10_000_000)), 413, 'body_too_large');
  });

  it.each([
    'application/json',
    'APPLICATION/JSON',
    'application/json;charset=utf-8',
    'application/json ; charset="UTF-8"',
    'application/json; a=b',
  ])('accepts Content-Type %s', async (type) => {
    // contract: envelope-5
    expect((await post(JSON.stringify(corporate()), { 'content-type': type })).status).toBe(201);
  });

  describe('refused with 415:', () => {
    expectNothingDone(world);

    it.each([
      '',
      'json',
      'application',
      'text/json',
      'text/plain',
      'application/jsonp',
      'application/json5',
      'application/json-patch+json',
      'application/merge-patch+json',
      'application/vnd.api+json',
      'application/x-ndjson',
      'application/x-json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/octet-stream',
      '*/*',
      'application/*',
      'application/json/x',
      'application/json, text/plain',
      'text/plain; application/json',
      "application/json'",
    ])('Content-Type %j', async (type) => {
      expectRefused(await post(JSON.stringify(retail()), { 'content-type': type }), 415, 'unsupported_media_type');
    });

    it.each(['gzip', 'br', 'deflate', 'zstd', 'gzip, identity', 'nonsense'])('Content-Encoding %s', async (coding) => {
      // contract: errors-13
      expectRefused(
        await post(JSON.stringify(retail()), { 'content-encoding': coding }),
        415,
        'unsupported_media_type',
      );
    });
  });
});
