import { z } from 'zod';
import type { ErrorCode } from './errors.ts';

type Context = { addIssue(issue: { code: 'custom'; params: { code: ErrorCode }; message: string }): void };

/** Adds a violation to a transformed field. The message continues after the field's name. */
export function violation(ctx: Context, code: ErrorCode, message: string): never {
  ctx.addIssue({ code: 'custom', params: { code }, message });
  return z.NEVER;
}
