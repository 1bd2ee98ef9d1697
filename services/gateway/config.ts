import type { Logger } from 'pino';
import { z } from 'zod';
import { approvalActions } from '#libs/contracts/approvals.ts';
import { refusedKey } from '#libs/contracts/mac.ts';
import { isCurrency, toMinor } from '#libs/contracts/money.ts';
import { homeCountry, isCountry } from '#libs/contracts/phones.ts';
import { type Scope, scopes } from '#libs/contracts/scopes.ts';
import { createSecretKeys } from '#libs/contracts/webhook-secret.ts';
import { bankConfig } from '#libs/service/bank-config.ts';
import { httpConfig, kafkaConfig, list, processConfig, url, wholeNumber } from '#libs/service/config.ts';
import { keyVerifyingConfig, macConfig, pepperConfig, secretKeysConfig } from '#libs/service/signing.ts';
import packageJson from '../../package.json' with { type: 'json' };
import type { FourEyes } from './access/four-eyes.ts';
import { createKeySet } from './access/jwks.ts';
import { asymmetricAlgorithms, tokenTypes } from './access/tokens.ts';
import { createCursors } from './api/cursor.ts';

const callingCode = /^[1-9]\d{0,2}$/;

/** role=scope scope;role=scope */
const roleScopes = z
  .string()
  .transform(
    (text) =>
      new Map(
        text
          .split(';')
          .filter((rule) => rule.trim() !== '')
          .map((rule) => {
            const [role = '', ...named] = rule.split('=').map((part) => part.trim());
            return [role, named.join('=').split(/ +/)] as const;
          }),
      ),
  )
  .refine(
    (roles) =>
      [...roles].every(([role, named]) => role !== '' && named.every((scope) => scopes.includes(scope as Scope))),
    'must be role=scope scope;role=scope with scopes that exist',
  )
  .meta({ title: 'role=scope scope;…' });

/** `KES:1000000 USD:10000` */
const amountLimits = z
  .string()
  .transform((text, ctx) => {
    const limits = new Map<string, string>();
    for (const part of text.split(/[\s,]+/).filter((one) => one !== '')) {
      const [, currency = '', amount = ''] = /^([A-Z]{3}):(\d{1,15}(?:\.\d{1,4})?)$/.exec(part) ?? [];
      const isLimit = isCurrency(currency) && typeof toMinor(amount, currency) === 'bigint' && !limits.has(currency);
      if (isLimit) limits.set(currency, amount);
      else
        ctx.addIssue({
          code: 'custom',
          message: `must be currencies with amounts, each once, such as "KES:1000000 USD:10000"; ${part} is invalid`,
        });
    }
    return limits as ReadonlyMap<string, string>;
  })
  .meta({ title: 'currencies with amounts' });

/** Also checked by `npm start`, before it starts any server. */
export const fourEyesConfig = {
  FOUR_EYES: z
    .string()
    .transform((text) => text.split(/[\s,]+/).filter((part) => part !== ''))
    .meta({ title: 'list, separated by commas or blanks' })
    .pipe(
      z.array(
        z.enum(['all', 'none', ...approvalActions], {
          error: ({ input }) =>
            `must be all, none, or some of ${approvalActions.join(', ')}, such as "reverse,unfreeze"; ${input} is none of them`,
        }),
      ),
    )
    .prefault('all')
    .describe(
      `Actions of people that a second person must approve: all, none, or some of ${approvalActions.join(', ')}`,
    ),
  FOUR_EYES_OFF_REASON: z
    .string()
    .trim()
    .min(10, 'must say why in at least 10 characters')
    .max(500)
    .optional()
    .describe(
      'Why FOUR_EYES leaves actions out, or FOUR_EYES_LIMITS has a limit above 10^13 minor units. Required then in production, and shown in the dashboard',
    ),
  FOUR_EYES_KEYS: z
    .enum(['on', 'off'])
    .default('off')
    .describe('on: actions of API keys need approval too, and keys with approvals:write may approve'),
  FOUR_EYES_LIMITS: amountLimits
    .optional()
    .describe(
      'For post_above: the largest amount that needs no approval, by currency, such as "KES:1000000 USD:10000"; postings in other currencies need one, whatever the amount. What a person posts in a day, a batch, and the captures of a hold count together',
    ),
};

export const gatewayConfig = z
  .object({
    ...processConfig,
    ...kafkaConfig,
    ...httpConfig,
    JWT_ISSUER: z.string().optional().describe('The iss of accepted tokens; without it only API keys are accepted'),
    JWT_AUDIENCE: list.optional().describe('The aud of accepted tokens; of several, a token needs one'),
    JWKS_URL: url('http', 'https').optional().describe("URL of the issuer's public keys"),
    JWT_TOKEN_TYPES: list
      .pipe(z.array(z.enum(tokenTypes)))
      .prefault('at+jwt,JWT')
      .describe('Values of typ in the header of accepted tokens; none accepts tokens without typ'),
    JWT_WHOLE_BANK_CLIENTS: list
      .optional()
      .describe(
        'OAuth clients (the azp of a token, else its client_id, cid, or appid) whose tokens act for the whole bank if they have no bank_client_id; * for all; if unset, none',
      ),
    JWT_SCOPES_CLAIM: z
      .string()
      .optional()
      .describe(
        'Claim that contains the scopes instead of scope: a name, or a path of names (realm_access.roles); its value is a string or a list',
      ),
    JWT_ROLE_SCOPES: roleScopes
      .optional()
      .describe(
        'Scopes of each value of JWT_SCOPES_CLAIM: teller=clients:read transactions:write;auditor=books:read. Other values are ignored; if unset, the values are scopes',
      ),
    KEY_MAX_LIFETIME_DAYS: wholeNumber(1, 730)
      .prefault('365')
      .describe('Maximum and default lifetime of a new API key, which never exceeds that of the key that creates it'),
    ...pepperConfig,
    GATEWAY_MAC_KEYS: macConfig.GATEWAY_MAC_KEYS,
    ...secretKeysConfig,
    ...keyVerifyingConfig,
    RATE_LIMIT_PER_MINUTE: wholeNumber(0, 1_000_000_000)
      .prefault('6000')
      .describe('Requests per minute and caller, counted by each gateway separately; 0 for no limit'),
    AUTH_FAILURES_PER_MINUTE: wholeNumber(0, 1_000_000_000)
      .prefault('60')
      .describe('Failed authentications per minute and address before further ones get a 429; 0 for no limit'),
    CORS_ORIGINS: list
      .prefault('*')
      .describe(
        'Origins whose pages may call the API: * for all (credentials travel in headers, never in cookies), empty for none',
      ),
    DEFAULT_COUNTRY: z
      .string()
      .refine(
        (text) => isCountry(text) || callingCode.test(text),
        'must be the code of a country in ISO 3166, such as KE, or a calling code, such as 254',
      )
      .optional()
      .describe(
        'Country, or calling code such as 254, of phone numbers without one: with KE, 0700 000 001 becomes +254700000001; if unset, they are refused',
      ),
    ...fourEyesConfig,
    SECURITY_CONTACT: z
      .string()
      .regex(
        /^(mailto:[^\s,@]+@[^\s,@]+|https:\/\/[^\s,]+|tel:\+[\d-]+)$/,
        'must be one address: mailto:security@bank.example, https://… or tel:+…',
      )
      .optional()
      .describe(
        'Contact for reporting vulnerabilities, published in /.well-known/security.txt (RFC 9116): mailto:, https:, or tel:; if unset, that path is not served',
      ),
    ...bankConfig,
  })
  .refine(
    (config) => config.JWKS_URL === undefined || (config.JWT_ISSUER !== undefined && config.JWT_AUDIENCE !== undefined),
    'JWKS_URL needs JWT_ISSUER and JWT_AUDIENCE',
  )
  .refine(
    ({ FOUR_EYES: named }) =>
      named.length > 0 && (named.length === 1 || !named.some((one) => one === 'all' || one === 'none')),
    'FOUR_EYES must be all, none, or names of actions',
  )
  .refine(
    (config) => config.JWT_ROLE_SCOPES === undefined || config.JWT_SCOPES_CLAIM !== undefined,
    'JWT_ROLE_SCOPES needs JWT_SCOPES_CLAIM',
  );

/** Returns the four-eyes settings as used by the API. */
function toFourEyes(
  config: Pick<
    GatewayConfig,
    'FOUR_EYES' | 'FOUR_EYES_KEYS' | 'FOUR_EYES_LIMITS' | 'FOUR_EYES_OFF_REASON' | 'BANK_TIME_ZONE'
  >,
): FourEyes {
  const named = config.FOUR_EYES;
  const actions = new Set(approvalActions.filter((action) => named.includes('all') || named.includes(action)));
  return {
    actions,
    offReason: config.FOUR_EYES_OFF_REASON,
    keys: config.FOUR_EYES_KEYS === 'on',
    limits: config.FOUR_EYES_LIMITS ?? new Map(),
    timeZone: config.BANK_TIME_ZONE,
  };
}

export type GatewayConfig = z.output<typeof gatewayConfig>;

/** An access token for longer is refused, 12 hours: the longest shift (docs/decisions/0035). */
export const maxTokenLifetimeS = 43_200;

/** A withdrawn key of the issuer is refused within this time, and tokens get a 503 if JWKS_URL has failed for this long. */
const maxKeyAgeMs = 300_000;

/** Returns the settings of createApp that follow from the configuration alone. */
export function appSettings(config: GatewayConfig, logger: Logger) {
  return {
    apiVersion: packageJson.version,
    isTrial: config.BANK_MODE === 'trial',
    homeCountry: homeCountry(config.DEFAULT_COUNTRY),
    pepper: config.API_KEY_PEPPER[0] ?? '',
    secretKeys: createSecretKeys(config.WEBHOOK_SECRET_KEYS),
    keyMaxLifetimeMs: config.KEY_MAX_LIFETIME_DAYS * 24 * 60 * 60 * 1000,
    cursors: createCursors(config.GATEWAY_MAC_KEYS.filter((key) => !refusedKey.test(key))),
    tokens: {
      issuer: config.JWT_ISSUER ?? '',
      audience: config.JWT_AUDIENCE ?? [],
      algorithms: asymmetricAlgorithms,
      types: config.JWT_TOKEN_TYPES,
      keySet:
        config.JWKS_URL === undefined
          ? undefined
          : createKeySet({ url: config.JWKS_URL, logger, maxStaleMs: maxKeyAgeMs }),
      wholeBankClients: config.JWT_WHOLE_BANK_CLIENTS ?? [],
      scopesClaim: config.JWT_SCOPES_CLAIM,
      roleScopes: config.JWT_ROLE_SCOPES,
      maxLifetimeS: maxTokenLifetimeS,
    },
    rateLimitPerMinute: config.RATE_LIMIT_PER_MINUTE,
    authFailuresPerMinute: config.AUTH_FAILURES_PER_MINUTE,
    trustProxy: config.TRUST_PROXY,
    corsOrigins: config.CORS_ORIGINS,
    fourEyes: toFourEyes(config),
    securityContact: config.SECURITY_CONTACT,
  };
}
