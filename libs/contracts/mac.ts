import { hash } from 'node:crypto';
import { sameHash } from './api-key.ts';

/**
 * Every message that asks a service for something carries a MAC (HMAC-SHA-256) by the service that
 * sends it, over what it says: all headers but those that change on the way, and the bytes of its
 * body. So who can write to the broker, and no more, has nothing done, and a message that was
 * changed is noticed.
 */
export type Signer = 'gateway' | 'accounts' | 'ledger' | 'webhooks';

/** `<signer>/<id of the key>:<MAC>` */
const macHeader = 'mac';
/** The new deadline of a redriven command, and the MAC of accounts that belongs to it. */
const renewedDeadlineHeader = 'renewed-deadline';
const renewalMacHeader = 'renewal-mac';

/** Where a reply goes, until when somebody waits for it, and traces: set, changed or taken away on the way. */
const notCovered = new Set([
  macHeader,
  renewedDeadlineHeader,
  renewalMacHeader,
  'correlation-id',
  'reply-topic',
  'reply-partition',
  'reply-by',
  'traceparent',
  'tracestate',
  'baggage',
]);
/** Headers that are added where a message is dead-lettered. */
const deadLetterPrefix = 'dlq-';

type Headers = Record<string, string>;
type Value = string | Buffer | null;

interface MacKey {
  signer: Signer;
  name: string;
  /**
   * The padded key that HMAC hashes before the message, and the one that it hashes before that
   * hash, with room for it.
   */
  inner: Buffer;
  outer: Buffer;
}

/** The secrets of each service that this process knows: the first of a service signs, each of them verifies. */
export class MacKeys {
  readonly #signing = new Map<Signer, MacKey>();
  readonly #byName = new Map<string, MacKey>();

  constructor(secrets: Partial<Record<Signer, readonly string[]>>) {
    for (const [signer, ofSigner] of Object.entries(secrets) as [Signer, readonly string[]][]) {
      for (const secret of ofSigner) {
        const key = macKey(signer, secret);
        this.#byName.set(key.name, key);
        if (!this.#signing.has(signer)) this.#signing.set(signer, key);
      }
    }
  }

  /** Adds the MAC of this service to the headers of a message. */
  sign(signer: Signer, { headers, value }: { headers: Headers; value: Value }): void {
    headers[macHeader] = this.#mac(signer, coveredHeaders(headers, value), value);
  }

  /** The service whose MAC the message carries; undefined where it carries none that is right. */
  signerOf({ headers, value }: { headers: Headers; value: Value }): Signer | undefined {
    return this.#verify(headers[macHeader], coveredHeaders(headers, value), value);
  }

  /** The headers with another deadline, by accounts. What their sender has signed stays as it is. */
  renewed(headers: Headers, deadline: string): Headers {
    return {
      ...headers,
      [renewedDeadlineHeader]: deadline,
      [renewalMacHeader]: this.#mac('accounts', renewal(headers, deadline), null),
    };
  }

  /**
   * The deadline that a message was given later; undefined where there is none, null where accounts
   * has not given it.
   */
  renewedDeadline(headers: Headers): string | undefined | null {
    const deadline = headers[renewedDeadlineHeader];
    if (deadline === undefined) return undefined;
    return this.#verify(headers[renewalMacHeader], renewal(headers, deadline), null) === 'accounts' ? deadline : null;
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

/** Each with its length, so that no two messages have the same text; in the order in which they were sent. */
function coveredHeaders(headers: Headers, value: Value): string {
  let text = value === null ? 'message without a body\n' : 'message\n';
  for (const name in headers) {
    if (notCovered.has(name) || name.startsWith(deadLetterPrefix)) continue;
    const content = headers[name] ?? '';
    text += `${name.length}:${name}${content.length}:${content}`;
  }
  return `${text}\n`;
}

function renewal(headers: Headers, deadline: string): string {
  return `renewal\n${headers[macHeader]}\n${deadline}`;
}

const blockBytes = 64;
const maxUtf8Bytes = 3;

function macKey(signer: Signer, secret: string): MacKey {
  const padded = Buffer.alloc(blockBytes);
  padded.write(hash('sha256', secret), 'hex');
  const [inner, outer] = [0x36, 0x5c].map((pad) => Buffer.from(padded.map((byte) => byte ^ pad))) as [Buffer, Buffer];
  const key = { signer, name: '', inner, outer: Buffer.concat([outer, Buffer.alloc(32)]) };
  return { ...key, name: `${signer}/${hmac(key, 'the id of this key', null).slice(0, 8)}` };
}

/** What is being hashed; grows with the longest message. */
let bytes: Buffer = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * HMAC-SHA-256, base64url. By two calls of hash, which take two thirds of the time of createHmac:
 * every posting is signed once and verified once (docs/decisions/0031).
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
