/** What only explains: it may change at any time. */
const annotations = new Set(['$schema', '$id', 'title', 'description', 'examples']);
/** Their order says nothing. */
const sets = new Set(['required', 'enum', 'type']);

type Node = { [keyword: string]: unknown };
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * PURE: what in `today` is not an addition to `released`; paths with what has changed, none where all is well. Within a
 * version of an event type the one allowed change is a further optional property: so consumers of the released schema
 * understand what is sent today, and what was sent then (in topics) still has today's form. Every other
 * difference counts, those that only one of the two would notice too: a new value of an enumeration, a type made wider.
 */
export function changes(released: unknown, today: unknown, path = '$'): string[] {
  if (!isNode(released) || !isNode(today)) return same(released, today) ? [] : [`${path} has changed`];
  const keywords = [...new Set([...Object.keys(released), ...Object.keys(today)])].filter((keyword) => !annotations.has(keyword));
  return keywords.flatMap((keyword) => {
    const [before, now] = [released[keyword], today[keyword]];
    const place = `${path}.${keyword}`;
    if (keyword === 'properties') return propertyChanges((before ?? {}) as Node, (now ?? {}) as Node, path);
    if (sets.has(keyword)) return same(sorted(before), sorted(now)) ? [] : [`${place} has changed`];
    if (Array.isArray(before) && Array.isArray(now) && before.length === now.length) return before.flatMap((item, i) => changes(item, now[i], `${place}[${i}]`));
    return changes(before, now, place);
  });
}

function propertyChanges(before: Node, now: Node, path: string): string[] {
  return Object.keys(before).flatMap((name) => (Object.hasOwn(now, name) ? changes(before[name], now[name], `${path}.${name}`) : [`${path}.${name} is gone`]));
}

function sorted(value: unknown): unknown {
  return Array.isArray(value) ? value.map(String).sort() : value;
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
