/** Keywords that only explain a schema; they may change at any time. */
const annotations = new Set(['$schema', '$id', '$comment', 'title', 'description', 'examples']);
/** Keywords whose values have no order. */
const sets = new Set(['required', 'enum', 'type']);
type Node = { [keyword: string]: unknown };
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Returns the incompatible changes from `released` to `today`, as paths with a description. Pure.
 * docs/events-evolution.md has the rules: within a version of an event type, a property may be added that is optional
 * or that all events have from a release on, and a value may be added to an open list. Consumers of the released schema
 * then understand today's events, and older events in topics match today's schema. Every other difference is
 * incompatible.
 */
export function changes(released: unknown, today: unknown, path = '$'): string[] {
  if (!isNode(released) || !isNode(today)) return same(released, today) ? [] : [`${path} has changed`];
  const keywords = [...new Set([...Object.keys(released), ...Object.keys(today)])].filter(
    (keyword) => !annotations.has(keyword),
  );
  return keywords.flatMap((keyword) => {
    const [before, now] = [released[keyword], today[keyword]];
    const place = `${path}.${keyword}`;
    if (keyword === 'properties') return propertyChanges((before ?? {}) as Node, (now ?? {}) as Node, path);
    if (keyword === 'required' && hasOnlyGained(released, before, now)) return [];
    if (keyword === 'enum' && String(today['$comment']).startsWith('open') && isSubset(before, now)) return [];
    if (sets.has(keyword)) return same(sorted(before), sorted(now)) ? [] : [`${place} has changed`];
    if (Array.isArray(before) && Array.isArray(now) && before.length === now.length)
      return before.flatMap((item, i) => changes(item, now[i], `${place}[${i}]`));
    return changes(before, now, place);
  });
}

function propertyChanges(before: Node, now: Node, path: string): string[] {
  return Object.keys(before).flatMap((name) =>
    Object.hasOwn(now, name) ? changes(before[name], now[name], `${path}.${name}`) : [`${path}.${name} is gone`],
  );
}

/** Reports whether all that is added is new properties, which every event has from now on. */
function hasOnlyGained(released: Node, before: unknown, now: unknown): boolean {
  const known = Object.keys((released['properties'] ?? {}) as Node);
  const gained = ((now ?? []) as string[]).filter((name) => !((before ?? []) as string[]).includes(name));
  return isSubset(before, now) && gained.every((name) => !known.includes(name));
}

function isSubset(part: unknown, whole: unknown): boolean {
  return ((part ?? []) as unknown[]).every((item) => ((whole ?? []) as unknown[]).includes(item));
}

function sorted(value: unknown): unknown {
  return Array.isArray(value) ? value.map(String).sort() : value;
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
