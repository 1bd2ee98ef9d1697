import { type LookupAddress, lookup as resolve } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { metadata, parseAddress, parseNetwork } from '#libs/service/networks.ts';

/**
 * Determines which addresses a service may connect to on behalf of a caller: none in private networks, unless
 * configured (contract: webhooks-22).
 */

const globalUnicast = ipaddr.parseCIDR('2000::/3');
const parsed = (networks: readonly string[]) => networks.map(parseNetwork).filter((network) => network !== undefined);

/** Unknown names, failing name servers, and private addresses: a caller does not learn which names exist inside. */
export const unreachable = 'its name does not resolve to a public address';

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
  const named = { allowed: parsed(networks), refused: parsed(metadata) };
  /** The IANA special-purpose registries, as ipaddr.js knows them, decide which addresses are globally reachable. */
  const allows = (text: string): boolean => {
    if (isIP(text) === 0) return false;
    const address = parseAddress(text);
    const range = ipaddr.subnetMatch(address, named, address.range());
    return range === 'allowed' || (range === 'unicast' && (address.kind() === 'ipv4' || address.match(globalUnicast)));
  };
  return {
    allows,
    wrongWith(url) {
      const { hostname, protocol, port } = new URL(url);
      const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
      const address = /^(.+\.)?localhost$/.test(host) ? '127.0.0.1' : isIP(host) === 0 ? undefined : host;
      if (address !== undefined && !allows(address))
        return 'must not resolve to a private network (WEBHOOK_ALLOW_NETWORKS names exceptions)';
      if (protocol === 'https:' && port !== '' && Number(port) < 1024)
        return 'must have port 443, or 1024 or above: below are services that do not receive webhooks';
      if (protocol === 'http:' && (address === undefined || parseAddress(address).range() !== 'loopback'))
        return 'must begin with https://';
      return undefined;
    },
    lookup(hostname, options, callback) {
      names(hostname, { ...options, all: true }, (error, found) => {
        if (error) return callback(Object.assign(new Error(unreachable), { code: 'EUNREACHABLE' }), []);
        const usable = (found as LookupAddress[]).filter(({ address }) => allows(address));
        const [first] = usable;
        if (!first) return callback(Object.assign(new Error(unreachable), { code: 'EUNREACHABLE' }), []);
        if (options.all) return callback(null, usable);
        callback(null, first.address, first.family);
      });
    },
  };
}
