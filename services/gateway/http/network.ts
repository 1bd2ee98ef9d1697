import { isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { parseAddress } from '#libs/service/networks.ts';

/**
 * Returns the network that counts as one address: a /64 for IPv6, because one user has all of it, and the IPv4
 * address for an IPv4-mapped one. Pure.
 */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%', 1);
  if (!isIPv6(plain)) return address;
  const parsed = parseAddress(plain);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  const network = parsed.parts.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}
