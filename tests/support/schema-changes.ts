/** Keywords that only explain a schema; they may change at any time. */
const annotations = new Set(['$schema', '$id', '$comment', 'title', 'description', 'examples']);
/** Keywords whose values have no order. */
const sets = new Set(['required', 'enum', 'type']);
/** Keywords whose addition makes a schema stricter. */
const rules = new Set([
  'pattern',
  'format',
  'const',
  'enum',
  'minimum',
  'minItems',
  'minLength',
  'maxLength',
  'maximum',
]);

type Node = { [keyword: string]: unknown };
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Returns the incompatible changes from `released` to `today`, as paths with a description. Pure.
 * docs/events-evolution.md has the rules: within a version of an event type, a property may be added that is optional
 * or that all events have from a release on, and a value may be added to an open list. Consumers of the released schema
 * then understand today's events, and older events in topics match today's schema. Every other difference is
 * incompatible. `mayNarrow`, before 1.0: a schema may also become stricter if the sent events do not change.
 */
export function changes(released: unknown, today: unknown, { mayNarrow = false, path = '$' } = {}): string[] {
  if (!isNode(released) || !isNode(today)) return same(released, today) ? [] : [`${path} has changed`];
  const keywords = [...new Set([...Object.keys(released), ...Object.keys(today)])].filter(
    (keyword) => !annotations.has(keyword),
  );
  return keywords.flatMap((keyword) => {
    const [before, now] = [released[keyword], today[keyword]];
    const place = `${path}.${keyword}`;
    if (keyword === 'properties')
      return propertyChanges((before ?? {}) as Node, (now ?? {}) as Node, { mayNarrow, path });
    if (keyword === 'required' && hasOnlyGained(released, before, now, mayNarrow)) return [];
    if (keyword === 'enum' && String(today['$comment']).startsWith('open') && isSubset(before, now)) return [];
    if (mayNarrow && isNarrower(keyword, released, today)) return [];
    if (sets.has(keyword)) return same(sorted(before), sorted(now)) ? [] : [`${place} has changed`];
    if (Array.isArray(before) && Array.isArray(now) && before.length === now.length)
      return before.flatMap((item, i) => changes(item, now[i], { mayNarrow, path: `${place}[${i}]` }));
    return changes(before, now, { mayNarrow, path: place });
  });
}

function propertyChanges(before: Node, now: Node, { mayNarrow, path }: { mayNarrow: boolean; path: string }): string[] {
  return Object.keys(before).flatMap((name) =>
    Object.hasOwn(now, name)
      ? changes(before[name], now[name], { mayNarrow, path: `${path}.${name}` })
      : [`${path}.${name} is gone`],
  );
}

/**
 * Returns new properties that every event has from now on; before 1.0 also existing ones that every event already had.
 */
function hasOnlyGained(released: Node, before: unknown, now: unknown, mayNarrow: boolean): boolean {
  const known = Object.keys((released['properties'] ?? {}) as Node);
  const gained = ((now ?? []) as string[]).filter((name) => !((before ?? []) as string[]).includes(name));
  return isSubset(before, now) && (mayNarrow || gained.every((name) => !known.includes(name)));
}

function isNarrower(keyword: string, released: Node, today: Node): boolean {
  const [before, now] = [released[keyword], today[keyword]];
  if (keyword === 'enum' && before !== undefined)
    return isSubset(now ?? [today['const']], before) && (now !== undefined || 'const' in today);
  if (keyword === 'type' || keyword === 'anyOf') {
    const types = ({ type, anyOf }: Node) => [type ?? (anyOf as Node[] | undefined)?.map((one) => one['type'])].flat();
    return isSubset(types(today), types(released));
  }
  return rules.has(keyword) && now !== undefined;
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
