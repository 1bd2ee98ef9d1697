import { z } from 'zod';
import type { ErrorCode } from './errors.ts';

type Context = { addIssue(issue: { code: 'custom'; params: { code: ErrorCode }; message: string }): void };

/** Of a field that is transformed: which rule it breaks, in words that follow its name, under this code. */
export function violation(ctx: Context, code: ErrorCode, message: string): never {
  ctx.addIssue({ code: 'custom', params: { code }, message });
  return z.NEVER;
}
