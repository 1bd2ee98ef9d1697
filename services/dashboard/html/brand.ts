import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';

/** The bank's own mark and colour, by settings. */

export interface Brand {
  /** An SVG or PNG file. */
  logo?: { type: 'image/svg+xml' | 'image/png'; content: Buffer } | undefined;
  /** A colour such as #0b5d3b. */
  accent?: string | undefined;
}

const maxLogoBytes = 64 * 1024;
const pngStart = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** Reads the file of a logo. Throws an Error that says what is wrong with it. */
function readLogo(path: string): NonNullable<Brand['logo']> {
  let content: Buffer;
  try {
    if (statSync(path).size > maxLogoBytes) throw new RangeError();
    content = readFileSync(path);
  } catch (error) {
    throw new Error(
      error instanceof RangeError ? `the file must not exceed ${maxLogoBytes / 1024} KiB` : 'the file cannot be read',
    );
  }
  if (content.subarray(0, pngStart.length).equals(pngStart)) return { type: 'image/png', content };
  if (/<svg[\s>]/.test(content.toString('utf8', 0, 4096))) return { type: 'image/svg+xml', content };
  throw new Error('the file must be an SVG or a PNG');
}

type Rgb = readonly [number, number, number];

const parseColour = (hex: string): Rgb =>
  [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as unknown as Rgb;
const toHex = (colour: Rgb): string =>
  `#${colour.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`;

function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as unknown as Rgb;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Returns the contrast of two colours as WCAG 2 defines it, from 1 to 21. */
export function contrast(one: string, other: string): number {
  const [light, dark] = [luminance(parseColour(one)), luminance(parseColour(other))].sort((a, b) => b - a) as [
    number,
    number,
  ];
  return (light + 0.05) / (dark + 0.05);
}

/** The backgrounds of pages in each theme on which the accent is a colour of text: --surface, --bg, --hover and --plain-tint (admin.css). */
export const backgrounds = {
  light: ['#ffffff', '#f6f7f9', '#f3f5f8', '#eceff3'],
  dark: ['#161b23', '#0e1117', '#1c222c', '#262d38'],
} as const;
/** The contrast of text that WCAG 2.2 AA requires. */
const sufficient = 4.5;

/** Mixes two colours as color-mix(in srgb) does. `share`: of the other one, from 0 to 1. */
const mix = (one: string, other: string, share: number): string => {
  const towards = parseColour(other);
  return toHex(parseColour(one).map((part, index) => part + ((towards[index] ?? 0) - part) * share) as unknown as Rgb);
};

/** The background of what is chosen: --tint, which is mixed of the surface and the colour of the text on it. */
export const tintOf = (surface: string, text: string): string => mix(surface, text, 0.1);

/** The same hue and saturation (of HSL) with another lightness, from 0 to 1: mixed with white, it would be grey. */
function withLightness(hex: string, lightness: number): string {
  const colour = parseColour(hex).map((part) => part / 255);
  const [low, high] = [Math.min(...colour), Math.max(...colour)];
  const own = (low + high) / 2;
  const range = (one: number) => Math.min(one, 1 - one);
  // A grey has no hue, and black and white have none that could be kept.
  const scale = high === low ? 0 : range(lightness) / range(own);
  return toHex(colour.map((part) => 255 * (lightness + (part - own) * scale)) as unknown as Rgb);
}

const lightnessOf = (hex: string): number => {
  const colour = parseColour(hex);
  return (Math.min(...colour) + Math.max(...colour)) / 510;
};

/** Makes a colour darker or lighter until it can be read on every one of these backgrounds, and on its own tint. */
function readable(hex: string, on: readonly [surface: string, ...string[]], step: number): string {
  const isReadable = (text: string) =>
    [...on, tintOf(on[0], text)].every((background) => contrast(text, background) >= sufficient);
  if (isReadable(hex)) return hex;
  for (let lightness = lightnessOf(hex) + step; lightness > 0 && lightness < 1; lightness += step) {
    const shown = withLightness(hex, lightness);
    if (isReadable(shown)) return shown;
  }
  return step < 0 ? '#000000' : '#ffffff';
}

/**
 * Returns the colours that an accent gives: of filled buttons, also under the pointer, of the text on them, and of links in
 * each theme, which is darker or lighter where the accent itself could not be read.
 */
export function accentColours(accent: string) {
  // One of the two can be read on any colour.
  const onFill = contrast(accent, '#ffffff') >= sufficient ? '#ffffff' : '#000000';
  return {
    fill: accent,
    onFill,
    // Under the pointer: away from the text on it.
    hover: mix(accent, onFill === '#ffffff' ? '#000000' : '#ffffff', 0.15),
    light: readable(accent, backgrounds.light, -0.02),
    dark: readable(accent, backgrounds.dark, 0.02),
  };
}

/** The style of an accent, after admin.css, which has one of its own. */
export function accentStyle(accent: string | undefined): string {
  if (accent === undefined) return '';
  const { fill, hover, onFill, light, dark } = accentColours(accent.toLowerCase());
  return `:root:not([data-theme]){--accent:${fill};--accent-hover:${hover};--on-accent:${onFill};--link:light-dark(${light},${dark})}`;
}

/** Without a logo, the first letter of the bank's name is its mark. */
export function letterMark(name: string, accent = '#2f5bea'): string {
  const letter = [...name.trim()][0]?.toUpperCase().replace(/[&<>]/, '') ?? '';
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="${accent}"/><text x="16" y="22.5" text-anchor="middle" font-family="system-ui, sans-serif" font-size="18" font-weight="700" fill="${accentColours(accent).onFill}">${letter}</text></svg>`;
}

export const brandConfig = {
  BANK_LOGO: z
    .string()
    .transform((path, context) => {
      try {
        return readLogo(path);
      } catch (error) {
        context.addIssue({ code: 'custom', message: String((error as Error).message) });
        return z.NEVER;
      }
    })
    .optional()
    .meta({ title: 'path of an SVG or PNG file of at most 64 KiB' })
    .describe('Mark of the bank on every page of the dashboard and as its icon in browsers; a square is best'),
  BANK_ACCENT: z
    .string()
    .regex(/^#[0-9a-f]{6}$/i, 'must be a colour of six digits, such as #0b5d3b')
    .optional()
    .describe(
      'Colour of buttons and links in the dashboard, such as #0b5d3b. Where it could not be read, links are darker or lighter',
    ),
};
