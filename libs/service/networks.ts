import { isIP } from 'node:net';

/** Networks as ranges of IPv6 addresses, in which an IPv4 address is ::ffff:a.b.c.d. Pure. */

type Range = readonly [start: bigint, end: bigint];

/** The names that fastify accepts (proxy-addr). */
const named: Record<string, string[]> = {
  loopback: ['127.0.0.0/8', '::1'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};

const ipv4: Range = [0xffffn << 32n, (0xffffn << 32n) + (1n << 32n)];
const ipv6: Range = [0n, 1n << 128n];

function numberOf(address: string): bigint {
  // The URL parser normalizes every notation of an address.
  const { hostname } = new URL(`http://[${isIP(address) === 4 ? '::ffff:' : ''}${address}]`);
  const [head = '', tail] = hostname
    .slice(1, -1)
    .split('::')
    .map((half) => half.split(':').filter((group) => group !== ''));
  const known = [...head, ...(tail ?? [])];
  const zeros = Array<string>(8 - known.length).fill('0');
  return BigInt(`0x${[...head, ...zeros, ...(tail ?? [])].map((group) => group.padStart(4, '0')).join('')}`);
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

/**
 * Reports whether the networks together contain more than a sixty-fourth of all IPv4 or all IPv6 addresses,
 * which is more than all private networks. Returns undefined if an element is neither an address, a network
 * with prefix length, nor a name that fastify accepts.
 */
export function areVast(networks: readonly string[]): boolean | undefined {
  const ranges = networks.map(rangesOf);
  if (ranges.includes(undefined)) return undefined;
  const known = ranges.flatMap((one) => one ?? []);
  return [ipv4, ipv6].some((space) => covered(known, space) * 64n > space[1] - space[0]);
}

const local = ['127.0.0.0/8', '::1', '169.254.0.0/16', 'fe80::/10'].flatMap((network) => rangesOf(network) ?? []);

/** Reports whether a network contains addresses of this machine or of its link. */
export function touchLocal(network: string): boolean {
  return (rangesOf(network) ?? []).some(([start, end]) => local.some(([from, to]) => start < to && from < end));
}
