import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, type TestContext, test } from 'vitest';
import { chosen, notHere, options, say, slowness } from '../suites/options.ts';
import { Campaign, type CampaignOptions, type Result } from './campaign.ts';
import { type Column, table, totals } from './report.ts';
import { type Row, rowTitle } from './row.ts';

/** The rows of one kind of cluster, and how it is started; default: one broker, one database. */
export interface RowGroup {
  name: string;
  rows: Row[];
  start?: CampaignOptions['start'];
  /** For the self-test of a kit: what its only row must find. It then passes, and is not in the table. */
  mustFind?: RegExp;
}

export const seed = options.seed ?? String(Date.now() % 1_000_000_007);
const quick = options.quick === true || options.short === true;

/** Starts a cluster under load in a folder of its own, with the options of the run. */
export function startCampaign(dir: string, settings: Partial<CampaignOptions> = {}): Promise<Campaign> {
  return Campaign.start({ seed, quick, dir, slowness, say, ...settings });
}

/** The folder of logs and journals of a run. It is kept if something was found. */
export function runFolder(name: string) {
  const dir = mkdtempSync(join(tmpdir(), `core-banking-${name}-`));
  let isKept = false;
  return {
    /** Returns the folder of one campaign. */
    of: (campaign: string) => mkdtempSync(join(dir, `${campaign}-`)),
    keep: () => void (isKept = true),
    end: (command: string) => {
      if (isKept) say(`to run it again: npm run ${command}; logs and journal are kept in ${dir}`);
      else rmSync(dir, { recursive: true, force: true });
    },
  };
}

const shownAlike = 20;

/** A test fails with its findings, of which few begin alike, and without a stack. */
export class Findings extends Error {
  override stack = '';
  constructor(findings: string[]) {
    const alike = Object.values(Object.groupBy(findings, (finding) => finding.slice(0, 30)));
    const lines = alike.flatMap((some = []) => [
      ...some.slice(0, shownAlike),
      ...(some.length > shownAlike ? [`… ${some.length - shownAlike} more`] : []),
    ]);
    super(lines.join('\n'));
  }
}

/**
 * Registers a test for each row that was chosen, and one that finally repeats all checks. The rows of a group run one
 * after the other on one cluster. After the last one, the table is printed.
 */
export function testRows(name: string, groups: RowGroup[], columns: Column[], only?: string[]): void {
  const selected = new Set(
    chosen(
      groups.flatMap(({ rows }) => rows),
      only,
    ),
  );
  const folder = runFolder(name);
  const results: Result[] = [];
  const judge = async (result: Result, context: TestContext) => {
    results.push(result);
    if (result.findings.length > 0) folder.keep();
    for (const note of result.notes) await context.annotate(note.trim());
    if (result.findings.length > 0) throw new Findings(result.findings);
    if (result.skipped !== undefined) notHere(context, result.skipped);
  };
  for (const group of groups) {
    const rows = group.rows.filter((row) => selected.has(row));
    if (rows.length === 0) continue;
    describe(group.name, () => {
      let campaign: Campaign | undefined;
      const running = () => campaign ?? Promise.reject(new Error('the cluster did not start'));
      beforeAll(async () => {
        campaign = await startCampaign(folder.of(group.name), { start: group.start });
      });
      afterAll(() => campaign?.stop());
      const { mustFind } = group;
      if (mustFind) {
        test(`${rows[0]?.name}: ${rows[0]?.title}`, async () => {
          const findings = [];
          for (const row of rows) findings.push(...(await (await running()).run(row)).findings);
          findings.push(...(await (await running()).verify()).findings);
          expect(findings).toContainEqual(expect.stringMatching(mustFind));
        });
        return;
      }
      for (const row of rows)
        test(`${row.name}: ${rowTitle(row, quick)}`, async (context) =>
          judge(await (await running()).run(row), context));
      test('everything again, at the end', async (context) => judge(await (await running()).verify(), context));
    });
  }
  afterAll(() => {
    if (results.length === 0) return;
    say(`\n${table(results, columns)}\n\n${totals(results)}; seed ${seed}`);
    folder.end(`test:${name} -- ${options.line}${options.seed === undefined ? ` --seed ${seed}` : ''}`);
  });
}
