/**
 * Markup by tagged template. Whatever is put into a template is escaped, for text and for quoted
 * attributes alike, unless it is markup of another template; so nothing that a person or the
 * database says can become part of a page's structure. Attributes are always written in double
 * quotes.
 */
class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}
export type Html = Markup;

/** What a template takes: absent and false parts are nothing, lists are put one after the other. */
export type Part = Html | string | number | bigint | false | null | undefined | readonly Part[];

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function render(part: Part): string {
  if (part instanceof Markup) return part.text;
  if (Array.isArray(part)) return (part as readonly Part[]).map(render).join('');
  if (part === undefined || part === null || part === false) return '';
  return String(part).replace(/[&<>"']/g, (character) => entities[character] ?? '');
}

/** Markup that somebody else has made and that is trusted as it is, such as a library's. */
export function trusted(text: string): Html {
  return new Markup(text);
}

export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return new Markup(strings.reduce((text, next, index) => text + render(parts[index - 1]) + next));
}
