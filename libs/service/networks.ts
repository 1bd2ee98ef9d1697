import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Networks as ranges of IPv6 addresses, in which an IPv4 address is ::ffff:a.b.c.d. Pure. */

type Range = readonly [start: bigint, end: bigint];

const loopback = ['127.0.0.0/8', '::1'];
const linklocal = ['169.254.0.0/16', 'fe80::/10'];
/** The names that fastify accepts (proxy-addr). */
const named: Record<string, string[]> = {
  loopback,
  linklocal,
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};

const ipv4: Range = [0xffffn << 32n, (0xffffn << 32n) + (1n << 32n)];
/** 2000::/3, the only IPv6 addresses that are routed publicly. */
const globalIpv6: Range = [1n << 125n, 1n << 126n];

type Address = ipaddr.IPv4 | ipaddr.IPv6;

function parse(address: string): Address {
  if (isIP(address) === 4) return ipaddr.IPv4.parse(address);
  // The URL parser normalizes every notation of an address. ipaddr.js reads ::1.2.3.4 as IPv4-mapped.
  return ipaddr.IPv6.parse(new URL(`http://[${address}]`).hostname.slice(1, -1));
}

/** Parses an address that isIP accepts, without its zone. An IPv4-mapped one is IPv4. */
export function parseAddress(address: string): Address {
  const parsed = parse(address.replace(/%.*$/, ''));
  return parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress() ? parsed.toIPv4Address() : parsed;
}

/** Parses an address or a network such as 10.1.2.0/24. Returns undefined if it is neither. */
export function parseNetwork(network: string): [address: Address, prefix: number] | undefined {
  const [, address = network, prefix] = /^([^/]*)\/(\d{1,3})$/.exec(network) ?? [];
  if (isIP(address) === 0 || address.includes('%')) return undefined;
  const parsed = parse(address);
  const bits = addressBits(parsed);
  const length = Number(prefix ?? bits);
  return length <= bits ? [parsed, length] : undefined;
}

const addressBits = (address: Address): number => (address instanceof ipaddr.IPv4 ? 32 : 128);

function parseRanges(network: string): Range[] | undefined {
  if (Object.hasOwn(named, network)) return named[network]?.flatMap((one) => parseRanges(one) ?? []);
  const parsed = parseNetwork(network);
  if (!parsed) return undefined;
  const [address, prefix] = parsed;
  const { parts } = address instanceof ipaddr.IPv4 ? address.toIPv4MappedAddress() : address;
  const number = parts.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n);
  const size = 1n << BigInt(addressBits(address) - prefix);
  const start = (number / size) * size;
  return [[start, start + size]];
}

/** Returns how many addresses of `space` are in at least one of the ranges. */
function covered(ranges: readonly Range[], [first, end]: Range): bigint {
  let [count, reached] = [0n, first];
  for (const [from, to] of ranges.toSorted((a, b) => (a[0] < b[0] ? -1 : 1))) {
    const begin = from > reached ? from : reached;
    const stop = to < end ? to : end;
    if (stop <= begin) continue;
    count += stop - begin;
    reached = stop;
  }
  return count;
}

/** The part of each space that is too much to trust: a /10, and a /23, because whole regions have a /12. */
const limits = [
  { space: ipv4, part: 1n << 10n },
  { space: globalIpv6, part: 1n << 20n },
];
const privateRanges = [...Object.keys(named), '100.64.0.0/10'].flatMap((network) => parseRanges(network) ?? []);

/**
 * Reports whether the networks together contain more public addresses than a /10 of IPv4 or a /23 of IPv6. Returns
 * undefined if an element is neither an address, a network with prefix length, nor a name that fastify accepts.
 */
export function areVast(networks: readonly string[]): boolean | undefined {
  const ranges = networks.map(parseRanges);
  if (ranges.includes(undefined)) return undefined;
  const known = ranges.flatMap((one) => one ?? []);
  const hidden = (space: Range): Range[] => privateRanges.filter(([from]) => from >= space[0] && from < space[1]);
  return limits.some(({ space, part }) => {
    const count = hidden(space).reduce((left, range) => left - covered(known, range), covered(known, space));
    return count * part > space[1] - space[0];
  });
}

/** The addresses of clouds' metadata services that are not link-local. */
export const metadata = [
  '100.100.100.200',
  '168.63.129.16',
  '192.0.0.192',
  'fd00:ec2::/32',
  'fd20:ce::254',
  'fd00:c1::a9fe:a9fe',
  'fd00:42::42',
];

/** Addresses of this machine (Linux connects to 0.0.0.0 and :: locally), of its link, and of metadata services. */
const local = ['0.0.0.0/8', '::', ...loopback, ...linklocal, ...metadata];
/** Networks that a gateway translates to IPv4 in ways that only it knows: Teredo, and NAT64 with an own prefix. */
const opaque = ['2001::/32', '64:ff9b:1::/48'];
/** The first bits, and their number, of IPv6 addresses that contain an IPv4 address: NAT64, 6to4, compatible, translated. */
const embedding: [prefix: bigint, length: number][] = [
  [0x64_ff9b_0000_0000_0000_0000n, 96],
  [0x2002n, 16],
  [0n, 96],
  [0xffff_0000n, 96],
];

/** Returns the range, and those of IPv6 that a gateway translates to it. */
function withTranslations([start, end]: Range): Range[] {
  if (start < ipv4[0] || end > ipv4[1]) return [[start, end]];
  const embedded = embedding.map(([prefix, length]): Range => {
    const unit = 1n << BigInt(96 - length);
    const at = (address: bigint) => (prefix << BigInt(128 - length)) + (address - ipv4[0]) * unit;
    return [at(start), at(end)];
  });
  return [[start, end], ...embedded];
}

const localRanges = [...local, ...opaque].flatMap((network) => parseRanges(network) ?? []).flatMap(withTranslations);

/**
 * Reports whether a network contains addresses of this machine, its link, or its cloud provider's metadata service, also
 * in a form that a gateway translates to one of them.
 */
export function touchLocal(network: string): boolean {
  return (parseRanges(network) ?? []).some(([start, end]) =>
    localRanges.some(([from, to]) => start < to && from < end),
  );
}

/**
 * Returns the network that counts as one address: a /64 for IPv6, because one user has all of it, and the IPv4 address
 * for an IPv4-mapped one. Some proxies add a port, which is dropped. All that is no address counts as one, because a
 * caller behind a proxy could otherwise invent any number of them. Pure.
 */
export function toNetwork(address: string): string {
  const withoutPort = address.replace(/^\[(.*)\](:\d+)?$|^([^:]*):\d+$/, '$1$3');
  const [ip = ''] = withoutPort.split('%', 1);
  if (!isIP(ip)) return 'unknown';
  const parsed = parseAddress(ip);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  const network = parsed.parts.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}

/** Returns an address as shown: an IPv4-mapped address as IPv4. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
