import { createRequire } from 'node:module';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bindMessage } from './bind.ts';

const require = createRequire(import.meta.url);
/** pg's own way, byte for byte the protocol's. */
const theirs = (createRequire(require.resolve('pg'))('pg-protocol') as { serialize: { bind(config: { statement: string; values: unknown[]; valueMapper(value: unknown): unknown }): Buffer } }).serialize.bind;

const valueMapper = (value: unknown) => value as Buffer | string | null;
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 20 }),
  fc.integer({ min: 4090, max: 4100 }).map((length) => new Uint8Array(length).fill(length % 251)),
  fc.integer({ min: 10_000, max: 200_000 }).map((length) => new Uint8Array(length).fill(length % 251)),
).map((array) => Buffer.from(array));
const values = fc.array(fc.oneof(bytes, fc.string({ unit: 'grapheme' }), fc.constant(null)), { maxLength: 40 });
const name = fc.constantFrom('', 'write_batch', 'größe');

describe('bindMessage', () => {
  it("is pg's message, whatever the parameters", () => {
    fc.assert(fc.property(values, name, (given, statement) => {
      expect(Buffer.concat(bindMessage(statement, given, valueMapper)).equals(theirs({ statement, values: given, valueMapper }))).toBe(true);
    }));
  });

  it('copies no large parameter', () => {
    const large = [Buffer.alloc(4096, 1), Buffer.alloc(1_000_000, 2)];
    const isLarge = (chunk: Buffer) => large.some((one) => one === chunk);
    const sent = bindMessage('', [Buffer.from('small'), ...large, 'text'], valueMapper);
    expect(sent.filter(isLarge)).toEqual(large);
    expect(sent.filter((chunk) => !isLarge(chunk)).reduce((sum, chunk) => sum + chunk.length, 0)).toBeLessThan(100);
  });

  it('asks for the value of each parameter as pg does, and passes on its refusal', () => {
    const refuse = () => {
      throw new Error('not a value');
    };
    expect(() => bindMessage('', [Buffer.alloc(5000)], refuse)).toThrow('not a value');
  });
});
