import * as oidc from 'openid-client';
import { scopes } from '#libs/contracts/scopes.ts';

/** Sign-in at the issuer: OpenID Connect, code flow with PKCE. */

export type SignInFault =
  /** It cannot be reached, or answers nothing that makes sense. */
  | 'issuer_away'
  /** It said no: the person may not, or did not want to. */
  | 'refused'
  /** The answer is not one to this browser's request, or not to be trusted. */
  | 'mismatch'
  /** The person may come in, but nobody could record that. */
  | 'unrecorded'
  /** One of too many failures of one address. */
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
  /** Longest wait for any one of its answers. Default 5 s. */
  timeoutMs?: number;
}

/** What the browser keeps between leaving for the issuer and coming back. */
interface Begun {
  verifier: string;
  state: string;
  nonce: string;
}

export interface Issuer {
  /** Where to send the person. Rejects with SignInFailed. */
  begin(): Promise<Begun & { url: string }>;
  /**
   * The person who came back with `callback`, their id token verified by the issuer's keys. Rejects
   * with SignInFailed.
   */
  finish(callback: URL, begun: Begun): Promise<{ token: string; name: string; expiresInMs: number }>;
}

/** Metadata are asked for again after this time. */
const keepMs = 3_600_000;
/** Where the issuer does not say how long its token is valid; each page verifies the token anyway. */
const defaultExpiryS = 300;

export function createIssuer({
  issuer,
  clientId,
  clientSecret,
  redirectUri,
  timeoutMs = 5_000,
}: IssuerOptions): Issuer {
  let known: { configuration: Promise<oidc.Configuration>; untilMs: number } | undefined;

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
  const configuration = (): Promise<oidc.Configuration> => {
    if (!known || known.untilMs <= performance.now()) {
      const asked = { configuration: discover(), untilMs: performance.now() + keepMs };
      known = asked;
      asked.configuration.catch(() => {
        if (known === asked) known = undefined;
      });
    }
    return known.configuration;
  };

  return {
    async begin() {
      const [verifier, state, nonce] = [oidc.randomPKCECodeVerifier(), oidc.randomState(), oidc.randomNonce()];
      const url = oidc.buildAuthorizationUrl(await configuration(), {
        redirect_uri: redirectUri,
        scope: ['openid', 'profile', ...scopes].join(' '),
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state,
        nonce,
        // Who signed out here must not come back in without a password.
        prompt: 'login',
      });
      return { url: url.href, verifier, state, nonce };
    },
    async finish(callback, { verifier, state, nonce }) {
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
          name: name.slice(0, 100),
          expiresInMs: (answer.expiresIn() ?? defaultExpiryS) * 1000,
        };
      } catch (error) {
        throw new SignInFailed(faultOf(error), error);
      }
    },
  };
}

function faultOf(error: unknown): SignInFault {
  if (error instanceof oidc.AuthorizationResponseError || error instanceof oidc.ResponseBodyError) return 'refused';
  const code = (error as { code?: unknown }).code;
  const isAway =
    error instanceof TypeError ||
    code === 'OAUTH_TIMEOUT' ||
    code === 'OAUTH_RESPONSE_IS_NOT_JSON' ||
    code === 'OAUTH_RESPONSE_IS_NOT_CONFORM';
  return isAway ? 'issuer_away' : 'mismatch';
}
