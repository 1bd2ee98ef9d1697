import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A test's own CA, made with openssl, and its certificates, as paths of PEM files. */
export interface Authority {
  ca: string;
  /**
   * Creates a certificate for these names (`IP:127.0.0.1`, `DNS:localhost`), its key, and a file with both. It is valid
   * from now on for this many days (default 2). A negative number creates an expired one.
   */
  sign(name: string, altNames: string[], days?: number): { cert: string; key: string; both: string };
}

export function createAuthority(dir: string, name = 'ca'): Authority {
  const openssl = (...args: string[]) =>
    execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: 30_000 });
  const file = (suffix: string) => join(dir, suffix);
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const [ca, caKey] = [file(`${name}.pem`), file(`${name}.key`)];
  openssl('req', '-x509', ...newKey, '-keyout', caKey, '-out', ca, '-days', '2', '-subj', `/CN=${name}`);
  return {
    ca,
    sign(subject, altNames, days = 2) {
      const [cert, key, request, extensions, both] = ['pem', 'key', 'csr', 'ext', 'both'].map((suffix) =>
        file(`${name}-${subject}.${suffix}`),
      ) as [string, string, string, string, string];
      writeFileSync(extensions, `subjectAltName=${altNames.join(',')}\n`);
      openssl('req', ...newKey, '-keyout', key, '-out', request, '-subj', `/CN=${subject}`);
      openssl(
        'x509',
        '-req',
        '-in',
        request,
        '-CA',
        ca,
        '-CAkey',
        caKey,
        '-CAcreateserial',
        '-days',
        String(days),
        '-out',
        cert,
        '-extfile',
        extensions,
      );
      writeFileSync(both, readFileSync(key, 'utf8') + readFileSync(cert, 'utf8') + readFileSync(ca, 'utf8'));
      chmodSync(key, 0o600);
      return { cert, key, both };
    },
  };
}
