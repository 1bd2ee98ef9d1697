import { hash } from 'node:crypto';
import { sameHash } from './api-key.ts';

/**
 * Every message that requests something from a service carries a MAC (HMAC-SHA-256) of the service that sends
 * it. The MAC covers the value and all headers except those that change in transit. Write access to the broker
 * alone is therefore not enough to execute anything, and a modified message is detected.
 */
export type Signer = 'gateway' | 'accounts' | 'ledger' | 'webhooks';

/** `<signer>/<id of the key>:<MAC>` */
const macHeader = 'mac';
/** The new deadline of a redriven command, with the MAC of accounts for it and for what had been decided before. */
const renewedDeadlineHeader = 'renewed-deadline';
const decidedHeader = 'decided-before';
const renewalMacHeader = 'renewal-mac';

/** Reply address, reply time, and trace headers: they are set, changed, or removed in transit. */
const notCovered = new Set([
  macHeader,
  renewedDeadlineHeader,
  decidedHeader,
  renewalMacHeader,
  'correlation-id',
  'reply-topic',
  'reply-partition',
  'reply-by',
  'traceparent',
  'tracestate',
  'baggage',
]);
/** The prefix of headers that are added when a message is dead-lettered. */
const deadLetterPrefix = 'dlq-';

type Headers = Record<string, string>;
type Value = string | Buffer | null;

interface MacKey<S extends string = string> {
  signer: S;
  name: string;
  /** The padded keys of the inner and the outer hash of HMAC. `outer` has room for the inner hash. */
  inner: Buffer;
  outer: Buffer;
}

/** An element `refused:<name of a key>` of a list of secrets: messages with a MAC by that key are forged. */
export const refusedKey = /^refused:([a-z]+\/[\w-]{8})$/;

/** The secrets of each service that this process knows. The first secret of a service signs; all of them verify. */
export class MacKeys {
  readonly #signing = new Map<Signer, MacKey<Signer>>();
  readonly #byName = new Map<string, MacKey<Signer>>();
  readonly #refused = new Set<string>();

  constructor(secrets: Partial<Record<Signer, readonly string[]>>) {
    for (const [signer, ofSigner] of Object.entries(secrets) as [Signer, readonly string[]][]) {
      for (const secret of ofSigner) {
        const refused = refusedKey.exec(secret)?.[1];
        if (refused !== undefined) {
          this.#refused.add(refused);
          continue;
        }
        const key = macKey(signer, secret);
        this.#byName.set(key.name, key);
        if (!this.#signing.has(signer)) this.#signing.set(signer, key);
      }
    }
  }

  /** Adds the MAC of `signer` to the headers of a message. */
  sign(signer: Signer, { headers, value }: { headers: Headers; value: Value }): void {
    headers[macHeader] = this.#mac(signer, coveredHeaders(headers, value), value);
  }

  /** Returns the service whose valid MAC the message carries, or undefined. */
  verifySigner({ headers, value }: { headers: Headers; value: Value }): Signer | undefined {
    return this.#verify(headers[macHeader], coveredHeaders(headers, value), value);
  }

  /**
   * Returns the headers with a new deadline, and with what had been decided before a restore (envelope.ts), signed by
   * accounts. The original MAC stays valid.
   */
  renewed(headers: Headers, deadline: string, decided?: string): Headers {
    const { [decidedHeader]: _, ...kept } = headers;
    return {
      ...kept,
      [renewedDeadlineHeader]: deadline,
      ...(decided === undefined ? {} : { [decidedHeader]: decided }),
      [renewalMacHeader]: this.#mac('accounts', renewal(headers, deadline, decided), null),
    };
  }

  /** Returns the renewed deadline and what had been decided, undefined if there is none, or null if accounts did not sign it. */
  renewal(headers: Headers): { deadline: string; decided?: string } | undefined | null {
    const { [renewedDeadlineHeader]: deadline, [decidedHeader]: decided } = headers;
    if (deadline === undefined) return undefined;
    const signer = this.#verify(headers[renewalMacHeader], renewal(headers, deadline, decided), null);
    if (signer !== 'accounts') return null;
    return decided === undefined ? { deadline } : { deadline, decided };
  }

  /**
   * Returns the key of the message's MAC, or of its renewed deadline's, if this process lacks it although it has keys of
   * that service and does not refuse it. The message may then be authentic: the keys of two processes differ, for example
   * during a rotation.
   */
  missingKey(headers: Headers, of: 'message' | 'renewal' = 'message'): { signer: Signer; name: string } | undefined {
    const mac = headers[of === 'message' ? macHeader : renewalMacHeader] ?? '';
    const [, name = '', signer = ''] = /^(([a-z]+)\/[\w-]{8}):/.exec(mac) ?? [];
    const isMissing = this.#signing.has(signer as Signer) && !this.#byName.has(name) && !this.#refused.has(name);
    return isMissing ? { signer: signer as Signer, name } : undefined;
  }

  #mac(signer: Signer, text: string, value: Value): string {
    const key = this.#signing.get(signer);
    if (!key) throw new TypeError(`this process has no MAC key of ${signer}`);
    return `${key.name}:${hmac(key, text, value)}`;
  }

  #verify(mac: string | undefined, text: string, value: Value): Signer | undefined {
    if (mac === undefined) return undefined;
    const separator = mac.indexOf(':');
    const key = this.#byName.get(mac.slice(0, separator));
    return key && sameHash(hmac(key, text, value), mac.slice(separator + 1)) ? key.signer : undefined;
  }
}

/**
 * MACs of events, which webhooks checks before it delivers them. The key is derived from those of accounts, which all
 * services that publish or store events have; gateways and consumers do not, because whoever can check a MAC can forge it
 * (docs/decisions/0031).
 */
export class EventKeys {
  readonly #keys: readonly MacKey[];
  readonly #refused: ReadonlySet<string | undefined>;

  /** Those of ACCOUNTS_MAC_KEYS: the first one signs; all of them verify. */
  constructor(secrets: readonly string[]) {
    this.#refused = new Set(secrets.map((secret) => refusedKey.exec(secret)?.[1]));
    this.#keys = secrets.filter((secret) => !refusedKey.test(secret)).map((secret) => macKey('events', secret));
  }

  /** Adds the MAC to the headers of an event. */
  sign(event: EventMessage): void {
    const [key] = this.#keys;
    if (key) event.headers[macHeader] = `${key.name}:${hmac(key, coveredAttributes(event), event.value)}`;
  }

  verify(event: EventMessage): boolean {
    const [name, mac = ''] = event.headers[macHeader]?.split(':') ?? [];
    const key = this.#keys.find((one) => one.name === name);
    return key !== undefined && sameHash(hmac(key, coveredAttributes(event), event.value), mac);
  }

  /** Returns the name of the key of the event's MAC, if this process lacks it and does not refuse it. */
  missingKey({ headers }: EventMessage): string | undefined {
    const [, name] = /^(events\/[\w-]{8}):/.exec(headers[macHeader] ?? '') ?? [];
    return this.#refused.has(name) || this.#keys.some((key) => key.name === name) ? undefined : name;
  }
}

interface EventMessage {
  headers: Headers;
  key: string | null;
  value: Value;
}

/** What webhooks delivers besides the value. Fewer headers than for a command take half of the time. */
function coveredAttributes({ headers, key }: EventMessage): string {
  const { ce_id, ce_type, ce_source, ce_time, ce_dataschema = '' } = headers;
  return `event\n${ce_id}\n${ce_type}\n${ce_source}\n${ce_time}\n${ce_dataschema.length}:${ce_dataschema}${key?.length}:${key}\n`;
}

/**
 * Joins the covered headers in their original order, each with its length, so that no two messages produce the
 * same text.
 */
function coveredHeaders(headers: Headers, value: Value): string {
  let text = value === null ? 'message without a body\n' : 'message\n';
  for (const name in headers) {
    if (notCovered.has(name) || name.startsWith(deadLetterPrefix)) continue;
    const content = headers[name] ?? '';
    text += `${name.length}:${name}${content.length}:${content}`;
  }
  return `${text}\n`;
}

function renewal(headers: Headers, deadline: string, decided?: string): string {
  return `renewal\n${headers[macHeader]}\n${deadline}${decided === undefined ? '' : `\n${decided}`}`;
}

const blockBytes = 64;
const maxUtf8Bytes = 3;

function macKey<S extends string>(signer: S, secret: string): MacKey<S> {
  const padded = Buffer.alloc(blockBytes);
  padded.write(hash('sha256', signer === 'events' ? `events ${secret}` : secret), 'hex');
  const [inner, outer] = [0x36, 0x5c].map((pad) => Buffer.from(padded.map((byte) => byte ^ pad))) as [Buffer, Buffer];
  const key = { signer, name: '', inner, outer: Buffer.concat([outer, Buffer.alloc(32)]) };
  return { ...key, name: `${signer}/${hmac(key, 'the id of this key', null).slice(0, 8)}` };
}

/** The buffer to hash. It grows to the size of the longest message. */
let bytes: Buffer = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * HMAC-SHA-256 in base64url. Two calls of `hash` take two thirds of the time of createHmac, and every posting
 * is signed and verified once (docs/decisions/0031).
 */
function hmac({ inner, outer }: Pick<MacKey, 'inner' | 'outer'>, text: string, value: Value): string {
  const needed = blockBytes + maxUtf8Bytes * (text.length + (value?.length ?? 0));
  if (needed > bytes.length) bytes = Buffer.allocUnsafeSlow(2 * needed);
  bytes.set(inner);
  let end = blockBytes + bytes.write(text, blockBytes);
  if (value !== null) end += typeof value === 'string' ? bytes.write(value, end) : value.copy(bytes, end);
  outer.write(hash('sha256', bytes.subarray(0, end)), blockBytes, 'hex');
  return hash('sha256', outer, 'base64url');
}
