import { z } from 'zod';

/** Fields of resources in responses. Replies are made by the bank, so they are described and not checked. */

/** A time in UTC with three decimals. */
export const time = z.string().meta({ format: 'date-time' });
/** A day of the bank. */
export const day = z.string().meta({ format: 'date' });
