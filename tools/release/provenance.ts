import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';

/** A file of a release and the SHA-256 of its content, in hexadecimal. */
export interface Artifact {
  name: string;
  sha256: string;
}

export interface Origin {
  version: string;
  commit: string;
  /** True if files differed from the commit. */
  dirty: boolean;
  lock: string;
  /** Base images by name, with the digests that the engine knows. */
  images: Artifact[];
  startedOn: Date;
  finishedOn: Date;
}

const payloadType = 'application/vnd.in-toto+json';

/** Returns an in-toto statement with SLSA's provenance predicate: the sources of these files. */
export function provenance(artifacts: readonly Artifact[], origin: Origin): object {
  const { version, commit, dirty, lock, images, startedOn, finishedOn } = origin;
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: artifacts.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:core-banking:release:1',
        externalParameters: { version },
        internalParameters: { dirty },
        resolvedDependencies: [
          { uri: 'git:HEAD', digest: { gitCommit: commit } },
          { uri: 'file:package-lock.json', digest: { sha256: lock } },
          ...images.map(({ name, sha256 }) => ({ uri: `docker:${name}`, digest: { sha256 } })),
        ],
      },
      runDetails: {
        builder: { id: 'urn:core-banking:tools/release' },
        metadata: { startedOn: startedOn.toISOString(), finishedOn: finishedOn.toISOString() },
      },
    },
  };
}

export interface Envelope {
  payloadType: string;
  payload: string;
  signatures: { keyid: string; sig: string }[];
}

/** Returns the statement in a DSSE envelope. Without a key it has no signature. */
export function envelope(statement: object, key: KeyObject | undefined): Envelope {
  const payload = Buffer.from(JSON.stringify(statement));
  const signatures = key === undefined ? [] : [{ keyid: keyId(key), sig: signed(preAuthEncoding(payload), key) }];
  return { payloadType, payload: payload.toString('base64'), signatures };
}

/** Returns whether the envelope has a signature that matches this public key. */
export function isSignedBy({ payload, signatures }: Envelope, publicKey: KeyObject): boolean {
  const bytes = preAuthEncoding(Buffer.from(payload, 'base64'));
  return signatures.some(({ sig }) => verify(digestName(publicKey), bytes, publicKey, Buffer.from(sig, 'base64')));
}

/**
 * Returns a signature in base64, as cosign verify-blob and openssl dgst -verify expect it: ECDSA and RSA over SHA-256,
 * Ed25519 over the text itself.
 */
export function signed(text: Buffer, key: KeyObject): string {
  return sign(digestName(key), text, key).toString('base64');
}

export const sha256 = (content: Buffer | string): string => createHash('sha256').update(content).digest('hex');

/** Returns the pre-authentication encoding of DSSE. */
function preAuthEncoding(payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `), payload]);
}

function digestName({ asymmetricKeyType: type }: KeyObject): 'sha256' | null {
  return type === 'ed25519' ? null : 'sha256';
}

function keyId(key: KeyObject): string {
  return sha256(createPublicKey(key).export({ type: 'spki', format: 'der' }));
}
