import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { parseAddress } from '#libs/service/networks.ts';

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
