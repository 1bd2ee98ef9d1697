import { copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Authority, createAuthority } from '../support/certificates.ts';

const names = ['IP:127.0.0.1'];

/**
 * The files that servers present and services trust. Each change replaces them immediately; a process uses the new ones
 * when it reads the files again.
 */
export class Certificates {
  /** The certificates that services trust: one or several CAs. */
  readonly trusted: string;
  /** Certificate and key of Postgres. */
  readonly cert: string;
  readonly key: string;
  /** Certificate and key of the brokers in one file. */
  readonly both: string;
  readonly #dir: string;
  #authority: Authority;
  #count = 1;

  constructor(dir: string) {
    this.#dir = join(dir, 'tls');
    mkdirSync(this.#dir, { recursive: true });
    [this.trusted, this.cert, this.key, this.both] = ['trusted.pem', 'server.crt', 'server.key', 'server.pem'].map(
      (name) => join(this.#dir, name),
    ) as [string, string, string, string];
    this.#authority = createAuthority(this.#dir, 'ca-1');
    this.trust([this.#authority]);
    this.present(this.#authority);
  }

  get authority(): Authority {
    return this.#authority;
  }

  /** Adds another CA, which signs from now on. */
  nextAuthority(): Authority {
    this.#authority = createAuthority(this.#dir, `ca-${++this.#count}`);
    return this.#authority;
  }

  trust(authorities: Authority[]): void {
    put(this.trusted, authorities.map(({ ca }) => readFileSync(ca, 'utf8')).join(''));
  }

  /** Replaces the certificates that servers present after their next reload or start. */
  present(authority: Authority, days = 2): void {
    const made = authority.sign(`server-${++this.#count}`, names, days);
    for (const [to, from] of [
      [this.cert, made.cert],
      [this.key, made.key],
      [this.both, made.both],
    ] as const) {
      copyFileSync(from, `${to}.new`);
      renameSync(`${to}.new`, to);
    }
  }
}

function put(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}
