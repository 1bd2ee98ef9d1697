import { type LookupAddress, lookup as resolve } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/**
 * Determines which addresses a service may connect to on behalf of a caller: none in private networks, unless
 * configured (contract: Webhooks).
 */

/**
 * Addresses that are not globally reachable (IANA special-purpose registries), and the metadata addresses of
 * clouds.
 */
const privateV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '168.63.129.16/32',
];
/** IPv6: everything except global unicast, and within it reserved ranges and ranges that embed other addresses. */
const privateV6 = ['::/3', '4000::/2', '8000::/1', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];
const loopback = listOf(['127.0.0.0/8', '::1/128']);
const refused = listOf([...privateV4, ...privateV6]);

export function isNetwork(text: string): boolean {
  const [address = '', prefix, more] = text.split('/');
  const bits = { 4: 32, 6: 128 }[isIP(address)];
  return (
    bits !== undefined &&
    more === undefined &&
    !address.includes('%') &&
    (prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits))
  );
}

/** One list per family, because a BlockList treats IPv4 as part of IPv6. */
type Networks = Record<'ipv4' | 'ipv6', BlockList>;

function listOf(networks: readonly string[]): Networks {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    const family = familyOf(address);
    lists[family].addSubnet(address, Number(prefix ?? (family === 'ipv4' ? 32 : 128)), family);
  }
  return lists;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}

/** Converts an IPv4 address embedded in IPv6 to IPv4. */
function plain(address: string): string {
  const { hostname } = isIP(address) === 6 ? new URL(`http://[${address.replace(/%.*$/, '')}]`) : { hostname: address };
  const [, high, low] = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname) ?? [];
  if (high === undefined || low === undefined) return hostname.replace(/^\[|\]$/g, '');
  const bits = Number.parseInt(high, 16) * 65_536 + Number.parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.');
}

const isIn = (networks: Networks, address: string): boolean =>
  networks[familyOf(address)].check(address, familyOf(address));

export interface AllowedAddresses {
  /** Reports whether requests may be sent to this address. */
  allows(address: string): boolean;
  /** Returns why the URL is refused, judging by the URL alone, or undefined. */
  wrongWith(url: string): string | undefined;
  /**
   * Resolves names to allowed addresses only. The HTTP client uses it, so the address that is checked is the
   * address that is connected to.
   */
  lookup: LookupFunction;
}

/** `names` resolves host names; tests replace it. */
export function allowedAddresses(networks: readonly string[], names: typeof resolve = resolve): AllowedAddresses {
  const allowed = listOf(networks);
  const allows = (given: string): boolean => {
    const address = plain(given);
    return isIP(address) !== 0 && (isIn(allowed, address) || !isIn(refused, address));
  };
  return {
    allows,
    wrongWith(url) {
      const { hostname, protocol } = new URL(url);
      const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
      const address = /^(.+\.)?localhost$/.test(host) ? '127.0.0.1' : isIP(host) === 0 ? undefined : plain(host);
      if (address !== undefined && !allows(address))
        return 'must not resolve to a private network (WEBHOOK_ALLOW_NETWORKS names exceptions)';
      if (protocol === 'http:' && (address === undefined || !isIn(loopback, address)))
        return 'must begin with https://';
      return undefined;
    },
    lookup(hostname, options, callback) {
      names(hostname, { ...options, all: true }, (error, found) => {
        if (error) return callback(error, []);
        const usable = (found as LookupAddress[]).filter(({ address }) => allows(address));
        const [first] = usable;
        if (!first)
          return callback(Object.assign(new Error('its name resolves to a private network'), { code: 'EPRIVATE' }), []);
        if (options.all) return callback(null, usable);
        callback(null, first.address, first.family);
      });
    },
  };
}
