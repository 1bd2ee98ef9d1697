/**
 * The local identity provider: a real OpenID provider (oidc-provider) in a separate process. It issues RS256 JWT access tokens to these confidential clients, all with the secret in IDP_CLIENT_SECRET:
 *   core-banking-local   client credentials, every scope
 *   reader               client credentials, the reading scopes only
 *   bound:<client_id>    client credentials, every scope, bound to that client of the bank by the claim bank_client_id
 *   dashboard            authorization code with PKCE (S256): people sign in, users.ts names them and their scopes
 * Without a `scope` parameter a machine's token has all scopes of its client; a person's token has
 * the requested scopes that the person is allowed, and the claims sub and name. idpConfig below
 * describes its environment.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type {
  Account,
  Adapter,
  AdapterPayload,
  ClientMetadata,
  Configuration,
  Grant,
  JWKS,
  KoaContextWithOIDC,
} from 'oidc-provider';
import Provider, { errors, interactionPolicy } from 'oidc-provider';
import { z } from 'zod';
import { scopes } from '#libs/contracts/scopes.ts';
import { loadConfig, url, wholeNumber } from '#libs/service/config.ts';
import { DASHBOARD_CLIENT, MAIN_CLIENT, READER_CLIENT } from './bank.ts';
import { writeAtomically } from './local-dir.ts';
import { createSignIn, pageHeaders, SIGN_IN_PATH, signOut, withoutSelfSubmission } from './sign-in.ts';
import { messagePage } from './sign-in-pages.ts';
import { userNamed } from './users.ts';

const BOUND_PREFIX = 'bound:';
/** OAuth requires a URI for the resource (RFC 8707). The audience in the token is IDP_AUDIENCE. */
const RESOURCE = 'urn:core-banking';
const TOKEN_SECONDS = 3600;
/** Sessions end after a working day. */
const SESSION_SECONDS = 8 * 3600;

type Settings = { secret: string; audience: string; redirectUris: string[]; postLogoutRedirectUris: string[] };
type Keys = { jwks: JWKS; cookie_key: string };

/** Returns the signing key, generated once and kept, so that tokens stay valid after a restart. */
function loadKeys(file: string): Keys {
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Keys;
  const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  const kid = randomBytes(8).toString('hex');
  const keys = {
    jwks: { keys: [{ ...key, kid, use: 'sig', alg: 'RS256' }] },
    cookie_key: randomBytes(32).toString('hex'),
  } as Keys;
  writeAtomically(file, JSON.stringify(keys));
  return keys;
}

function dashboardMetadata({ secret, redirectUris, postLogoutRedirectUris }: Settings): ClientMetadata {
  return {
    client_id: DASHBOARD_CLIENT,
    client_secret: secret,
    // Gateways use any free port, and native clients may use every port of a loopback address (RFC 8252, 7.3).
    application_type: 'native',
    grant_types: ['authorization_code'],
    response_types: ['code'],
    redirect_uris: redirectUris,
    post_logout_redirect_uris: postLogoutRedirectUris,
    scope: ['openid', 'profile', ...scopes].join(' '),
  };
}

function clientMetadata(id: string, settings: Settings): ClientMetadata | undefined {
  if (id === DASHBOARD_CLIENT) return dashboardMetadata(settings);
  const readable = scopes.filter((scope) => scope.endsWith(':read') && scope !== 'audit:read');
  const known = id === MAIN_CLIENT || id === READER_CLIENT || id.startsWith(`${BOUND_PREFIX}cli_`);
  if (!known) return undefined;
  return {
    client_id: id,
    client_secret: settings.secret,
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
    scope: (id === READER_CLIENT ? readable : scopes).join(' '),
  };
}

/**
 * Stores the provider's data in memory (access tokens are JWTs and are not stored), and derives
 * clients from their names.
 */
function memoryAdapter(model: string, settings: Settings): Adapter {
  const entries = new Map<string, AdapterPayload>();
  const findBy = (test: (entry: AdapterPayload) => boolean) => [...entries.values()].find(test);
  return {
    async upsert(id, payload, expiresIn) {
      entries.set(id, payload);
      if (expiresIn) setTimeout(() => entries.delete(id), expiresIn * 1000).unref();
    },
    find: async (id) => (model === 'Client' ? clientMetadata(id, settings) : entries.get(id)),
    findByUid: async (uid) => findBy((entry) => entry.uid === uid),
    findByUserCode: async (userCode) => findBy((entry) => entry.userCode === userCode),
    async consume(id) {
      const entry = entries.get(id);
      if (entry !== undefined) entry.consumed = Math.floor(Date.now() / 1000);
    },
    async destroy(id) {
      entries.delete(id);
    },
    async revokeByGrantId(grantId) {
      for (const [id, entry] of entries) if (entry.grantId === grantId) entries.delete(id);
    },
  };
}

function account(id: string): Account | undefined {
  const user = userNamed(id);
  return user && { accountId: id, claims: () => ({ sub: id, name: user.name }) };
}

/** The bank's own dashboard needs no consent. It gets the scopes that the person is allowed. */
async function grantAll({ oidc }: KoaContextWithOIDC): Promise<Grant> {
  const user = userNamed(oidc.session?.accountId);
  const grant = new oidc.provider.Grant({ accountId: user?.user_name, clientId: oidc.client?.clientId });
  grant.addOIDCScope('openid profile');
  grant.addResourceScope(RESOURCE, (user?.scopes ?? []).join(' '));
  await grant.save();
  return grant;
}

function extraClaims(clientId: string, accountId: string | undefined): Record<string, string> | undefined {
  if (clientId.startsWith(BOUND_PREFIX)) return { bank_client_id: clientId.slice(BOUND_PREFIX.length) };
  const user = userNamed(accountId);
  return user && { name: user.name };
}

function signInOnly(): interactionPolicy.Prompt[] {
  const policy = interactionPolicy.base();
  policy.remove('consent');
  return policy;
}

function showMessage(ctx: KoaContextWithOIDC, title: string, text: string): void {
  ctx.type = 'html';
  ctx.body = messagePage(title, text);
}

/** Pages and actions for people: sign-in and sign-out. */
const forPeople = {
  findAccount: (_ctx, id) => account(id),
  claims: { openid: ['sub'], profile: ['name'] },
  pkce: { required: () => true },
  loadExistingGrant: grantAll,
  interactions: { policy: signInOnly(), url: (_ctx, interaction) => `${SIGN_IN_PATH}${interaction.uid}` },
  renderError: (ctx, out) =>
    showMessage(ctx, 'That did not work', [out.error, out.error_description].filter(Boolean).join(': ')),
} satisfies Configuration;

function resourceServer(audience: string): NonNullable<Configuration['features']>['resourceIndicators'] {
  return {
    enabled: true,
    defaultResource: (ctx, client) => {
      // This is called before the scopes are checked: a request without scopes gets all scopes that the client is
      // allowed.
      if (ctx.oidc.params !== undefined) ctx.oidc.params['scope'] ??= client?.scope;
      return RESOURCE;
    },
    useGrantedResource: () => true,
    getResourceServerInfo: (_ctx, resource) => {
      if (resource !== RESOURCE) throw new errors.InvalidTarget();
      return {
        audience,
        scope: scopes.join(' '),
        accessTokenFormat: 'jwt',
        accessTokenTTL: TOKEN_SECONDS,
        jwt: { sign: { alg: 'RS256' } },
      };
    },
  };
}

function configuration(keys: Keys, settings: Settings): Configuration {
  return {
    ...forPeople,
    adapter: (model: string) => memoryAdapter(model, settings),
    jwks: keys.jwks,
    cookies: { keys: [keys.cookie_key] },
    scopes: ['openid', 'profile', ...scopes],
    clientAuthMethods: ['client_secret_basic', 'client_secret_post'],
    ttl: {
      AccessToken: TOKEN_SECONDS,
      ClientCredentials: TOKEN_SECONDS,
      IdToken: TOKEN_SECONDS,
      Interaction: 3600,
      Session: SESSION_SECONDS,
      Grant: SESSION_SECONDS,
    },
    extraTokenClaims: (_ctx, token) =>
      extraClaims(token.clientId ?? '', 'accountId' in token ? token.accountId : undefined),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      userinfo: { enabled: false },
      rpInitiatedLogout: {
        logoutSource: signOut,
        postLogoutSuccessSource: (ctx) => showMessage(ctx, 'Signed out', 'You can close this page.'),
      },
      resourceIndicators: resourceServer(settings.audience),
    },
  };
}

const uris = z.string().transform((text) => text.split(' ').filter((item) => item !== ''));

export const idpConfig = z.object({
  IDP_HOST: z.string().default('127.0.0.1').describe('Address that it listens on'),
  IDP_PORT: wholeNumber(0, 65_535).describe('Port that it listens on'),
  IDP_ISSUER: url('http').optional().describe('Where browsers and gateways reach it; default: 127.0.0.1 and IDP_PORT'),
  IDP_KEYS_PATH: z.string().describe('File with its signing key, made at the first start'),
  IDP_CLIENT_SECRET: z.string().describe('The secret of every client'),
  IDP_AUDIENCE: z.string().describe('The aud of access tokens'),
  IDP_USER_PASSWORD: z.string().describe('The password of all people'),
  IDP_DASHBOARD_REDIRECT_URIS: uris.describe('Separated by spaces; of a loopback address every port is meant'),
  IDP_DASHBOARD_POST_LOGOUT_REDIRECT_URIS: uris.describe('Likewise'),
});

function main(): void {
  const config = loadConfig(idpConfig);
  const settings: Settings = {
    secret: config.IDP_CLIENT_SECRET,
    audience: config.IDP_AUDIENCE,
    redirectUris: config.IDP_DASHBOARD_REDIRECT_URIS,
    postLogoutRedirectUris: config.IDP_DASHBOARD_POST_LOGOUT_REDIRECT_URIS,
  };
  const provider = new Provider(
    config.IDP_ISSUER ?? `http://127.0.0.1:${config.IDP_PORT}`,
    configuration(loadKeys(config.IDP_KEYS_PATH), settings),
  );
  provider.on('server_error', (_ctx, error) => console.error(error));
  const headers = pageHeaders([...settings.redirectUris, ...settings.postLogoutRedirectUris]);
  provider.use(async (ctx, next) => {
    ctx.set(headers);
    await next();
  });
  provider.use(withoutSelfSubmission);
  const signIn = createSignIn(provider, config.IDP_USER_PASSWORD, headers);
  const rest = provider.callback();
  const server = createServer((request, response) =>
    request.url?.startsWith(SIGN_IN_PATH) ? signIn(request, response) : rest(request, response),
  );
  server.listen(config.IDP_PORT, config.IDP_HOST);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      server.close(() => process.exit(0));
      server.closeAllConnections();
    });
  }
}

if (import.meta.main) main();
