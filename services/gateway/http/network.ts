import { isIPv6 } from 'node:net';

/**
 * Returns the network that counts as one address: a /64 for IPv6, because one user has all of it, and the IPv4
 * address for an IPv4-mapped one. Pure.
 */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%', 1);
  if (!isIPv6(plain)) return address;
  const [head = [], tail] = plain.split('::').map(groupsOf);
  const groups =
    tail === undefined ? [...head] : [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped)
    return groups
      .slice(6)
      .flatMap((group) => [group >> 8, group & 0xff])
      .join('.');
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** Returns the 16-bit groups of part of an address, whose last group may be IPv4. */
function groupsOf(part: string): number[] {
  if (part === '') return [];
  return part.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}

/** Returns an address as shown: an IPv4-mapped address as IPv4. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
