import type { Pages } from './call.ts';
import type { Answer } from './send.ts';
import { pathAndQuery } from './send.ts';

/** The pages, starting at the path of the first one; `ask` requests one. */
export function createPages<T>(
  path: string,
  ask: (path: string) => Promise<Answer>,
  readItems: (answer: Answer) => T[],
): Pages<T> {
  async function* pages() {
    for (let next: string | undefined = path; next !== undefined; ) {
      const answer: Answer = await ask(next);
      yield readItems(answer);
      const link = /<([^>]+)>;\s*rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
      next = link === undefined ? undefined : pathAndQuery(link);
    }
  }
  async function* items() {
    for await (const page of pages()) yield* page;
  }
  return {
    [Symbol.asyncIterator]: items,
    pages,
    async toArray(count = Infinity) {
      const found: T[] = [];
      if (count <= 0) return found;
      for await (const item of items()) {
        found.push(item);
        if (found.length >= count) break;
      }
      return found;
    },
  };
}
