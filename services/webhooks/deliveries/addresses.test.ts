import type { LookupAddress } from 'node:dns';
import { describe, expect, it } from 'vitest';
import { parseNetwork } from '#libs/service/networks.ts';
import { allowedAddresses } from './addresses.ts';

const none = allowedAddresses([]);
const local = allowedAddresses(['127.0.0.0/8', '::1', '10.1.2.0/24']);

describe('addresses', () => {
  const refused = [
    '127.0.0.1',
    '127.255.255.254',
    '0.0.0.0',
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    '198.18.0.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:a00:1',
    '::127.0.0.1',
    '::1.1.1.1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::1',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'fd00:ec2::254',
    'fec0::1',
    'ff02::1',
    '2002:7f00:1::',
    '2001::1',
    '2001:db8::1',
    '100::1',
    '4000::1',
    'localhost',
    '',
    'x',
  ];
  it.each(refused)('%s is refused', (address) => {
    // contract: webhooks-22
    // asvs: 1.3.6
    expect(none.allows(address)).toBe(false);
  });

  it.each([
    '1.1.1.1',
    '93.184.216.34',
    '172.15.0.1',
    '172.32.0.1',
    '100.63.0.1',
    '2606:4700::1111',
    '2a00:1450:4001::1',
    '::ffff:1.1.1.1',
  ])('%s is allowed', (address) => expect(none.allows(address)).toBe(true));

  it('networks in WEBHOOK_ALLOW_NETWORKS are allowed in addition', () => {
    for (const address of ['127.0.0.1', '::1', '10.1.2.3', '::ffff:10.1.2.3'])
      expect(local.allows(address), address).toBe(true);
    for (const address of ['10.1.3.1', '192.168.1.1', 'fe80::1']) expect(local.allows(address), address).toBe(false);
  });

  it('networks are addresses, optionally with a valid prefix length', () => {
    for (const network of ['10.0.0.0/8', '::1', '1.2.3.4', 'fd00::/8'])
      expect(parseNetwork(network), network).toBeDefined();
    for (const network of [
      '10.0.0.0/33',
      'x',
      'loopback',
      '::1/129',
      '10.0.0.0/',
      '10.0.0.0/8/8',
      '10.0.0.0/0008',
      'fe80::1%eth0',
    ])
      expect(parseNetwork(network), network).toBeUndefined();
  });
});

describe('urls', () => {
  it.each([
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://[::1]/',
    'https://[::ffff:7f00:1]/',
    'https://localhost/',
    'https://a.localhost./',
    'https://10.0.0.1:8443/x',
    'https://169.254.169.254/latest',
  ])('%s is in a private network', (url) => {
    // contract: webhooks-22
    expect(none.wrongWith(url)).toMatch(/private network/);
  });

  it('https is required, except on loopback if it is allowed', () => {
    // contract: webhooks-4
    expect(none.wrongWith('http://receiver.example/')).toBe('must begin with https://');
    expect(local.wrongWith('http://10.1.2.3/')).toBe('must begin with https://');
    for (const url of [
      'http://127.0.0.1:4000/',
      'http://localhost:4000/',
      'http://[::1]:4000/',
      'https://10.1.2.3/',
      'https://receiver.example/',
    ])
      expect(local.wrongWith(url), url).toBeUndefined();
  });
});

it.each([
  ['https://receiver.example/', true],
  ['https://receiver.example:443/', true],
  ['https://receiver.example:1024/', true],
  ['https://receiver.example:8443/', true],
  ['https://receiver.example:65535/', true],
  ...[0, 1, 22, 25, 80, 110, 143, 389, 445, 465, 587, 636, 993, 1023].map((port): [string, boolean] => [
    `https://receiver.example:${port}/`,
    false,
  ]),
])('%s has a port of receivers: %s', (url, isAllowed) => {
  // contract: webhooks-4
  // asvs: 1.3.6
  expect(none.wrongWith(url)).toEqual(isAllowed ? undefined : expect.stringMatching(/443, or 1024 or above/));
});

describe('names', () => {
  /** The results of a resolver that returns a different address each time, as an attacker's would. */
  const resolving = (...answers: LookupAddress[][]) =>
    allowedAddresses(['127.0.0.0/8'], ((
      _name: string,
      _options: object,
      callback: (error: null, found: LookupAddress[]) => void,
    ) => callback(null, answers.shift() ?? [])) as never);
  const look = (addresses: ReturnType<typeof allowedAddresses>, all: boolean) =>
    new Promise((resolve) => {
      addresses.lookup('receiver.example', { all }, (error, address) => resolve(error?.code ?? address));
    });
  const v4 = (address: string): LookupAddress => ({ address, family: 4 });

  it('names resolve only to allowed addresses, and are resolved again for each connection', async () => {
    const addresses = resolving(
      [v4('1.1.1.1'), v4('10.0.0.1')],
      [v4('10.0.0.1')],
      [v4('169.254.169.254'), v4('1.1.1.1')],
      [v4('127.0.0.1')],
    );
    expect(await look(addresses, true)).toEqual([v4('1.1.1.1')]);
    expect(await look(addresses, true)).toBe('EUNREACHABLE');
    expect(await look(addresses, false)).toBe('1.1.1.1');
    expect(await look(addresses, false)).toBe('127.0.0.1');
  });
});
