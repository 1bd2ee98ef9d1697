import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accentColours, accentStyle, backgrounds, contrast, letterMark, tintOf } from './brand.ts';

const style = readFileSync(join(import.meta.dirname, 'assets/admin.css'), 'utf8');
/** Returns a colour of the style in the light and in the dark theme. */
function valuesOf(name: string): readonly [string, string] {
  const [, light, dark] = new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(style) ?? [];
  if (light === undefined || dark === undefined) throw new Error(`there is no --${name}`);
  return [light, dark];
}

const colour = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, '0')}`);

describe('the accent of a bank', () => {
  it('can be read in both themes, whatever it is', () => {
    fc.assert(
      fc.property(colour, (accent) => {
        const { fill, hover, onFill, light, dark } = accentColours(accent);
        const all = [
          [onFill, fill],
          [onFill, hover],
          ...[...backgrounds.light, tintOf(backgrounds.light[0], light)].map((on) => [light, on]),
          ...[...backgrounds.dark, tintOf(backgrounds.dark[0], dark)].map((on) => [dark, on]),
        ] as [string, string][];
        expect(all.filter(([text, on]) => contrast(text, on) < 4.5)).toEqual([]);
      }),
    );
  });

  it('is itself where it can be read, and darker or lighter elsewhere', () => {
    expect(contrast('#ffffff', '#000000')).toBeCloseTo(21);
    expect(accentColours('#0b5d3b')).toMatchObject({ fill: '#0b5d3b', onFill: '#ffffff', light: '#0b5d3b' });
    expect(accentColours('#ffcc00')).toMatchObject({ fill: '#ffcc00', onFill: '#000000', dark: '#ffcc00' });
    expect(accentStyle(undefined)).toBe('');
    expect(accentStyle('#0B5D3B')).toMatch(/^:root[^{]*\{--accent:#0b5d3b;/);
  });

  it('keeps its hue and its saturation', () => {
    // A dark green is a green in the dark theme, and no grey.
    const { dark } = accentColours('#0b6b4f');
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => Number.parseInt(dark.slice(at, at + 2), 16));
    expect((Math.max(red, green, blue) - Math.min(red, green, blue)) / green).toBeGreaterThan(0.8);
    expect(green).toBeGreaterThan(blue);
    expect(blue).toBeGreaterThan(red);
  });

  it('is computed with the backgrounds of the style', () => {
    const pairs = backgrounds.light.map((light, i) => [light, backgrounds.dark[i]]);
    expect(['surface', 'bg', 'hover', 'plain-tint'].map(valuesOf)).toEqual(pairs);
    expect(style).toContain('--tint: color-mix(in srgb, var(--link) 10%, var(--surface));');
  });

  it.each([0, 1])('text, the ring of the focus and borders of fields can be seen in theme %d', (theme) => {
    const value = (name: string) => valuesOf(name)[theme] ?? '';
    const onPages = ['surface', 'bg', 'hover', 'plain-tint'].map(value);
    const on = (names: readonly string[], least: number, places: readonly string[]) =>
      names.flatMap((name) =>
        places.filter((place) => contrast(value(name), place) < least).map((place) => `${name} on ${place}`),
      );
    expect([
      ...on(['text', 'muted', 'link'], 4.5, onPages),
      ...on(['link'], 4.5, [tintOf(value('surface'), value('link'))]),
      ...['good', 'wait', 'bad', 'info'].flatMap((tone) => on([tone], 4.5, [...onPages, value(`${tone}-tint`)])),
      // WCAG 1.4.11
      ...on(['link', 'field'], 3, onPages),
    ]).toEqual([]);
    expect(style).toContain('--ring: var(--link);');
    expect(style).toContain('--pico-form-element-border-color: var(--field);');
  });

  it('a bank without a logo has its first letter as a mark', () => {
    expect(letterMark('équity <b>')).toMatch(/>É<\/text><\/svg>$/);
    expect(letterMark('<')).toMatch(/><\/text><\/svg>$/);
  });
});
