/** What JavaScript calls white space, and the classes that other engines read in other ways. */
const classes: Record<string, string> = {
  d: '0-9',
  w: 'A-Za-z0-9_',
  s: '\\t\\n\\x0b\\f\\r \\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff',
};

/**
 * Returns a pattern that RE2, Rust, Java, Python, and .NET read like JavaScript: without `\u`, which RE2 lacks, and
 * without the classes (`\s`, `\d`, `.`) that they read differently. Throws for look-around and back references, which RE2 and
 * Rust lack.
 */
export function portable(pattern: string): string {
  if (/\(\?[=!<]|\\[1-9]/.test(pattern)) throw new TypeError(`RE2 cannot compile ${pattern}`);
  let inside = false;
  return pattern.replace(/\\u([0-9a-fA-F]{4})|\\([dsw])|\\([DSW])|\\\/|\\.|[[\].]/g, (token, hex, some, none) => {
    if (hex !== undefined) return character(Number.parseInt(hex, 16));
    if (some !== undefined) return inside ? (classes[some] ?? '') : `[${classes[some]}]`;
    if (none !== undefined) return `[^${classes[none.toLowerCase()]}]`;
    if (token === '\\/') return '/';
    if (token === '.' && !inside) return '[^\\n\\r\u2028\u2029]';
    if (token === '[' || token === ']') inside = token === '[';
    return token;
  });
}

/** Returns the schemas with patterns that every engine reads alike. */
export function withPortablePatterns<T>(schemas: T): T {
  const text = JSON.stringify(schemas, (key, value) =>
    key === 'pattern' && typeof value === 'string' ? portable(value) : value,
  );
  return JSON.parse(text);
}

const character = (code: number) =>
  code > 0xff ? String.fromCharCode(code) : `\\x${code.toString(16).padStart(2, '0')}`;
