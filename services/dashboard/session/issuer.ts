import * as oidc from 'openid-client';
import { kept } from '#libs/service/metrics.ts';

/** Sign-in at the issuer: OpenID Connect, code flow with PKCE. */

export type SignInFault =
  /** The issuer cannot be reached or sends an invalid response. */
  | 'issuer_away'
  /** The issuer refused, or the person cancelled. */
  | 'refused'
  /** The response does not belong to this browser's request, or cannot be trusted. */
  | 'mismatch'
  /** The sign-in was valid but could not be recorded. */
  | 'unrecorded'
  /** The address has exceeded its limit of failures. */
  | 'too_many';

export class SignInFailed extends Error {
  override name = 'SignInFailed';
  readonly fault: SignInFault;

  constructor(fault: SignInFault, cause: unknown) {
    super(fault, { cause });
    this.fault = fault;
  }
}

export interface IssuerOptions {
  issuer: string;
  clientId: string;
  clientSecret: string;
  redirectUri: string;
  /** The scopes to request, separated by spaces. */
  scope: string;
  /** The maximum time to wait for a response. Default 5 s. */
  timeoutMs?: number;
}

/** The data that the browser stores while the person is at the issuer. */
interface Begun {
  verifier: string;
  state: string;
  nonce: string;
}

export type Issuer = ReturnType<typeof createIssuer>;

/** The issuer's metadata is read again after this time. */
const keepMs = 3_600_000;
/** Used if the issuer does not specify the validity of its token. Each page verifies the token anyway. */
const defaultExpiryS = 300;

export function createIssuer({ issuer, clientId, clientSecret, redirectUri, scope, timeoutMs = 5_000 }: IssuerOptions) {
  const discover = async (): Promise<oidc.Configuration> => {
    const url = new URL(issuer);
    // Configuration refuses http in production (libs/service/production.ts).
    const execute =
      url.protocol === 'http:'
        ? [oidc.allowInsecureRequests, oidc.enableNonRepudiationChecks]
        : [oidc.enableNonRepudiationChecks];
    try {
      return await oidc.discovery(url, clientId, { [oidc.clockTolerance]: 30 }, oidc.ClientSecretBasic(clientSecret), {
        execute,
        timeout: timeoutMs / 1000,
      });
    } catch (error) {
      throw new SignInFailed('issuer_away', error);
    }
  };
  const configuration = kept(discover, keepMs);

  return {
    /** Returns the URL to send the person to. Rejects with SignInFailed. */
    async begin(): Promise<Begun & { url: string }> {
      const [verifier, state, nonce] = [oidc.randomPKCECodeVerifier(), oidc.randomState(), oidc.randomNonce()];
      const url = oidc.buildAuthorizationUrl(await configuration(), {
        redirect_uri: redirectUri,
        scope,
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state,
        nonce,
        // After signing out, a person must enter the password again.
        prompt: 'login',
      });
      return { url: url.href, verifier, state, nonce };
    },
    /**
     * Returns the person who came back with `callback`, after verifying their id token with the issuer's keys.
     * Rejects with SignInFailed.
     */
    async finish(callback: URL, { verifier, state, nonce }: Begun) {
      const known = await configuration();
      try {
        const answer = await oidc.authorizationCodeGrant(known, callback, {
          pkceCodeVerifier: verifier,
          expectedState: state,
          expectedNonce: nonce,
          idTokenExpected: true,
        });
        const claims = answer.claims();
        const name =
          [claims?.['name'], claims?.['preferred_username'], claims?.sub].find(
            (text): text is string => typeof text === 'string' && text !== '',
          ) ?? '';
        return {
          token: answer.access_token,
          idToken: answer.id_token,
          name: name.slice(0, 100),
          expiresInMs: (answer.expiresIn() ?? defaultExpiryS) * 1000,
        };
      } catch (error) {
        throw new SignInFailed(toSignInFault(error), error);
      }
    },
  };
}

function toSignInFault(error: unknown): SignInFault {
  if (error instanceof oidc.AuthorizationResponseError || error instanceof oidc.ResponseBodyError) return 'refused';
  const code = (error as { code?: unknown }).code;
  const isAway =
    error instanceof TypeError ||
    code === 'OAUTH_TIMEOUT' ||
    code === 'OAUTH_RESPONSE_IS_NOT_JSON' ||
    code === 'OAUTH_RESPONSE_IS_NOT_CONFORM';
  return isAway ? 'issuer_away' : 'mismatch';
}
