import { z } from 'zod';

/**
 * The value of a record in the topic `sessions`. Its key is either the id of an ended session, or an actor all of whose
 * sessions that began before `before` have ended. After `expires_at` these sessions have expired in any case.
 */
export const endedSessionSchema = z.object({ expires_at: z.iso.datetime(), before: z.iso.datetime().optional() });
