import type { z } from 'zod';
import { createSealer } from '../session/seal.ts';

/**
 * Instructions are passed between pages in the URL, so that each page can be reloaded. They are sealed, so that
 * the confirmed instruction is the one that was shown, and nobody can forge a link with an instruction.
 */
export interface SealedInstructions<T extends { actor: string }> {
  seal(instruction: T): string;
  /** Returns undefined if the text was not sealed by a gateway of this bank for this purpose and this person. */
  open(sealed: string | null, actor: string): T | undefined;
}

export function createSealedInstructions<T extends { actor: string }>(
  schema: z.ZodType<T>,
  purpose: string,
  secrets: readonly string[],
): SealedInstructions<T> {
  const sealer = createSealer(secrets, purpose);
  return {
    seal: (instruction) => sealer.seal(JSON.stringify(instruction)),
    open(sealed, actor) {
      const text = sealer.open(sealed ?? '');
      const instruction = text === undefined ? undefined : schema.parse(JSON.parse(text));
      return instruction?.actor === actor ? instruction : undefined;
    },
  };
}
