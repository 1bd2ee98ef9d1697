/** What only explains: it may change at any time. */
const annotations = new Set(['$schema', '$id', '$comment', 'title', 'description', 'examples']);
/** Their order says nothing. */
const sets = new Set(['required', 'enum', 'type']);
/** A rule more, or a narrower one, refuses what was never sent. */
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
 * PURE: what in `today` is not an addition to `released`; paths with what has changed, none where
 * all is well. The rules are those of docs/events-evolution.md. Within a version of an event type
 * there may be a further property, which all events have from a release on or which is optional,
 * and a further value of an open list: so consumers of the released schema understand what is sent
 * today, and what was sent then (in topics) still has today's form. Every other difference counts.
 * `mayNarrow`, before 1.0: so may rules that refuse what was never sent.
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
 * Properties that are new, and come with every event from now on; before 1.0 those too that came
 * with every event already.
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
