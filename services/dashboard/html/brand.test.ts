import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accentColours, accentStyle, backgrounds, contrast, letterMark } from './brand.ts';

const colour = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, '0')}`);

describe('the accent of a bank', () => {
  it('can be read in both themes, whatever it is', () => {
    fc.assert(
      fc.property(colour, (accent) => {
        const { fill, onFill, light, dark } = accentColours(accent);
        const all = [
          [onFill, fill],
          ...backgrounds.light.map((on) => [light, on]),
          ...backgrounds.dark.map((on) => [dark, on]),
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

  it('is computed with the backgrounds of the style', () => {
    const style = readFileSync(join(import.meta.dirname, 'assets/admin.css'), 'utf8');
    const valueOf = (name: string) => new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(style)?.slice(1);
    expect([valueOf('bg'), valueOf('surface')]).toEqual([
      [backgrounds.light[1], backgrounds.dark[0]],
      [backgrounds.light[0], backgrounds.dark[1]],
    ]);
  });

  it('a bank without a logo has its first letter as a mark', () => {
    expect(letterMark('équity <b>')).toMatch(/>É<\/text><\/svg>$/);
    expect(letterMark('<')).toMatch(/><\/text><\/svg>$/);
  });
});
