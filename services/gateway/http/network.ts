import { isIPv6 } from 'node:net';

/**
 * PURE: what counts as one address. Whoever has an IPv6 address has a /64 of them, so that counts
 * as one; an IPv4 address that is written as an IPv6 one is the IPv4 address.
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

/** The 16-bit groups of a part of an address; the last one may be written as IPv4. */
function groupsOf(part: string): number[] {
  if (part === '') return [];
  return part.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}

/** An address as it is shown: IPv4 that is written as IPv6 is IPv4. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
