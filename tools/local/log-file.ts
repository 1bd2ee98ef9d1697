import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Child } from './child.ts';

/** Returns the size of a log in bytes; 0 if it does not exist yet. */
export function logSize(file: string): number {
  try {
    return statSync(file).size;
  } catch {
    return 0;
  }
}

/** Returns the last lines of a log, for an error message. */
export function logTail(file: string, lines = 15): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  } catch {
    return '(no log)';
  }
}

function readFrom(file: string, offset: number): string {
  const size = logSize(file);
  if (size <= offset) return '';
  const buffer = Buffer.alloc(size - offset);
  const handle = openSync(file, 'r');
  try {
    return buffer.toString('utf8', 0, readSync(handle, buffer, 0, buffer.length, offset));
  } finally {
    closeSync(handle);
  }
}

/**
 * Waits until a process has written `text` to its log after `offset`. Throws an error with the end of that log if the
 * process ends first, or after `timeoutMs` (then the process is killed).
 */
export async function awaitLogLine(
  child: Child,
  file: string,
  offset: number,
  text: string,
  timeoutMs: number,
): Promise<void> {
  // If the log was renamed at this start, the new one begins at 0.
  const from = logSize(file) < offset ? 0 : offset;
  const end = Date.now() + timeoutMs;
  while (!readFrom(file, from).includes(text)) {
    const problem = !child.running()
      ? `ended (${await child.exited})`
      : Date.now() > end
        ? `was not ready in ${timeoutMs / 1000} s`
        : undefined;
    if (problem !== undefined) {
      await child.stop(0);
      throw new Error(
        `${child.name} ${problem}. The end of ${file}:\n${logTail(file)}\nStart again; where files of LOCAL_DIR were deleted or damaged, delete all of it with its data: the next start then makes an empty bank`,
      );
    }
    await sleep(30);
  }
}
