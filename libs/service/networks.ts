import { isIP } from 'node:net';

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

/** Returns the eight 16-bit groups of an IPv6 address, in any notation. */
export function groupsOf(address: string): number[] {
  // The URL parser normalizes every notation of an address.
  const [head = [], tail = []] = new URL(`http://[${address}]`).hostname
    .slice(1, -1)
    .split('::')
    .map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = Array<string>(8 - head.length - tail.length).fill('0');
  return [...head, ...zeros, ...tail].map((group) => Number.parseInt(group, 16));
}

function numberOf(address: string): bigint {
  const groups = groupsOf(isIP(address) === 4 ? `::ffff:${address}` : address);
  return groups.reduce((number, group) => (number << 16n) | BigInt(group), 0n);
}

function rangesOf(network: string): Range[] | undefined {
  if (Object.hasOwn(named, network)) return named[network]?.flatMap((one) => rangesOf(one) ?? []);
  const [address = '', prefix, more] = network.split('/');
  const bits = { 4: 32, 6: 128 }[isIP(address)];
  if (bits === undefined || address.includes('%') || more !== undefined) return undefined;
  if (prefix !== undefined && !(/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)) return undefined;
  const size = 1n << BigInt(bits - Number(prefix ?? bits));
  const start = (numberOf(address) / size) * size;
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
const privateRanges = [...Object.keys(named), '100.64.0.0/10'].flatMap((network) => rangesOf(network) ?? []);

/**
 * Reports whether the networks together contain more public addresses than a /10 of IPv4 or a /23 of IPv6. Returns
 * undefined if an element is neither an address, a network with prefix length, nor a name that fastify accepts.
 */
export function areVast(networks: readonly string[]): boolean | undefined {
  const ranges = networks.map(rangesOf);
  if (ranges.includes(undefined)) return undefined;
  const known = ranges.flatMap((one) => one ?? []);
  const hidden = (space: Range): Range[] => privateRanges.filter(([from]) => from >= space[0] && from < space[1]);
  return limits.some(({ space, part }) => {
    const count = hidden(space).reduce((left, range) => left - covered(known, range), covered(known, space));
    return count * part > space[1] - space[0];
  });
}

/** Addresses of this machine (Linux connects to 0.0.0.0 and :: locally), of its link, and of metadata services. */
const local = [
  '0.0.0.0/8',
  '::',
  ...loopback,
  ...linklocal,
  '100.100.100.200',
  '168.63.129.16',
  '192.0.0.192',
  'fd00:ec2::254',
].flatMap((network) => rangesOf(network) ?? []);

/** Reports whether a network contains addresses of this machine, its link, or its cloud provider's metadata service. */
export function touchLocal(network: string): boolean {
  return (rangesOf(network) ?? []).some(([start, end]) => local.some(([from, to]) => start < to && from < end));
}
