import { describe, expect, it } from 'vitest';
import { goalText, isMet } from './goals.ts';
import { inTurn, judgeTrust, median, ratio } from './measure.ts';
import { markdown, shown } from './report.ts';
import { createRequests } from './requests.ts';
import { slopePerHour } from './rows/endurance.ts';

describe('requests', () => {
  const plan = {
    credential: 'x-api-key: k',
    target: { kind: 'transfer' as const, accounts: ['acc_1', 'acc_2'] },
  };

  it('each have their own key, their length, and two different accounts', () => {
    const next = createRequests(plan, 'run');
    const texts = Array.from({ length: 100 }, next);
    expect(new Set(texts.map((text) => /idempotency-key: (\S+)/.exec(text)?.[1])).size).toBe(100);
    for (const text of texts) {
      const [head = '', body = ''] = text.split('\r\n\r\n');
      expect(/content-length: (\d+)/.exec(head)?.[1]).toBe(String(Buffer.byteLength(body)));
      const { from_account_id, to_account_id } = JSON.parse(body) as Record<string, string>;
      expect(from_account_id).not.toBe(to_account_id);
    }
  });

  it('fill in a template: different accounts, unique keys, items', () => {
    const target = {
      kind: 'post' as const,
      path: '/p',
      accounts: ['a', 'b'],
      body: '[$items]',
      item: '"$one$other$key"',
      items: 3,
    };
    const next = createRequests({ ...plan, target }, 'run');
    const [head = '', body = ''] = next().split('\r\n\r\n');
    expect(head).toContain('POST /p HTTP/1.1');
    expect(head).toContain(`content-length: ${body.length}`);
    expect(body).toMatch(/^\["(ab|ba)run-0","(ab|ba)run-1","(ab|ba)run-2"\]$/);
    expect(next()).toContain('run-3');
  });

  it('use paths in turn', () => {
    const next = createRequests({ ...plan, target: { kind: 'get', paths: ['/a', '/b'] } }, 'run');
    expect([next(), next(), next()].map((text) => text.split(' ')[1])).toEqual(['/a', '/b', '/a']);
  });
});

describe('medians', () => {
  it('are those of the rounds, and ratios are computed within a round', () => {
    expect(median([5, 1, 3])).toBe(3);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(ratio([10, 30, 100], [1, 2, 4])).toBe(15);
  });

  it('have a slope over time', () => {
    const points = Array.from({ length: 60 }, (_, i): [number, number] => [i / 60, 100 + i / 30]);
    expect(slopePerHour(points)).toBeCloseTo(2);
  });

  it('come from sides in alternating order', async () => {
    const order: string[] = [];
    const results = await inTurn(3, { a: async () => order.push('a'), b: async () => order.push('b') });
    expect(order).toEqual(['a', 'b', 'b', 'a', 'a', 'b']);
    expect(results).toEqual({ a: [1, 4, 5], b: [2, 3, 6] });
  });
});

describe('report', () => {
  it('shows for each goal whether it is met, and what was not measured', () => {
    const text = markdown(
      {
        some: {
          lines: [
            { goal: 'batch-1000', value: 2100.4, note: 'x' },
            { goal: 'over-pgbench', missing: 'no pgbench' },
            { goal: 'peers-transfers', value: 8, note: 'a | b' },
          ],
        },
      },
      { node: 'v24' },
    );
    const rows = text.split('\n').filter((line) => line.startsWith('|'));
    expect(rows[2]).toContain('| ≥ 8 | 8.00 | yes | a \\| b |');
    expect(rows[3]).toContain('| not measured | – | no pgbench |');
    expect(rows[4]).toContain('| ≤ 2000 ms | 2100 ms | no | x |');
  });

  it('shows how reliable the loads of a group are', () => {
    const trust = judgeTrust([
      { elsewhere: 0.1, generatorCores: 0.2, wrong: 0 },
      { elsewhere: 0.5, generatorCores: 0.1, wrong: 3 },
      { elsewhere: 0.2, generatorCores: 0.1, wrong: 1 },
    ]);
    expect(markdown({ some: { lines: [], trust } }, {})).toContain('| some | 3 | 0.20 | 0.50 | 0.20 | 4 |');
    expect(judgeTrust([])).toEqual({ loads: 0, elsewhere: 0, mostElsewhere: 0, mostGenerator: 0, wrong: 0 });
  });

  it('supports goals without a target', () => {
    expect([goalText({ title: '' }), isMet({ title: '' }, 1)]).toEqual(['report', undefined]);
    expect([shown(1234.5), shown(12.34, 'ms'), shown(0.654), shown(NaN)]).toEqual(['1235', '12.3 ms', '0.65', '–']);
  });
});
