/**
 * HTML by tagged template. Every inserted value is escaped, for text and for quoted attributes, unless it is
 * markup from another template. Data from people or the database can therefore never become part of the page's
 * structure. Always write attributes in double quotes.
 */
class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}
export type Html = Markup;

/** The values that a template accepts. Absent and false values are omitted; lists are concatenated. */
export type Part = Html | string | number | bigint | false | null | undefined | readonly Part[];

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function render(part: Part): string {
  if (part instanceof Markup) return part.text;
  if (Array.isArray(part)) return (part as readonly Part[]).map(render).join('');
  if (part === undefined || part === null || part === false) return '';
  return String(part).replace(/[&<>"']/g, (character) => entities[character] ?? '');
}

/** Markup from a trusted source, such as a library. */
export function trusted(text: string): Html {
  return new Markup(text);
}

export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return new Markup(strings.reduce((text, next, index) => text + render(parts[index - 1]) + next));
}
