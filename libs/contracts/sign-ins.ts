import { z } from 'zod';
import { type Scope, scopes } from './scopes.ts';
import { text } from './texts.ts';

/** What an application for staff, such as the dashboard, reports about the person who uses it. */

const session_id = z.string().regex(/^ses_[0-9a-f]{32}$/, 'must be ses_ and 32 hexadecimal digits');

/** The person of an access token. */
export const signInSchema = z.object({
  session_id: z.string(),
  actor: z.string(),
  scopes: z.array(z.enum(scopes as readonly [Scope, ...Scope[]])),
});

export const signOutSchema = z.object({ session_id: z.string() });

/** An export, or a page or form that the application refused. */
export const activitySchema = z.object({
  action: z.string(),
  outcome: z.enum(['success', 'insufficient_scope', 'invalid_credentials']),
});

export const signInBodies = {
  signIn: z.strictObject({ session_id }),
  signOut: z.strictObject({ session_id }),
  recordActivity: z.strictObject({
    action: z.string().regex(/^(export|(page|form):[\w:/-]{0,100})$/, 'must be export, or page: or form: with a path'),
    outcome: activitySchema.shape.outcome,
    resource_id: text(1, 100).nullish(),
    file: text(1, 200).optional(),
    filters: z.record(text(1, 100), text(0, 500)).optional(),
  }),
};

/**
 * The value of a record in the topic `sessions`. Its key is either an access token's id (its SHA-256), or a person with
 * an OAuth client, all of whose tokens that were issued before `before` have ended. After `expires_at` these tokens have
 * expired in any case.
 */
export const endedTokenSchema = z.object({ expires_at: z.iso.datetime(), before: z.iso.datetime().optional() });
