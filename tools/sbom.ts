import { spawnSync } from 'node:child_process';

/**
 * Prints the CycloneDX bill of what runs in production: all of the lock but what only development
 * needs. Not by `--omit dev`: npm 11.19 then leaves out packages that are in production, too, where
 * a development tool names them as peers.
 */
interface Bill {
  components: { 'bom-ref': string; properties?: { name: string; value: string }[] }[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

const { status, stdout, stderr } = spawnSync(
  'npm',
  ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'application'],
  {
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'pipe'],
  },
);
if (status !== 0) {
  process.stderr.write(stderr);
  process.exit(1);
}
const bill = JSON.parse(stdout) as Bill;
bill.components = bill.components.filter(
  ({ properties = [] }) =>
    !properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true'),
);
const kept = new Set(bill.components.map((component) => component['bom-ref']));
bill.dependencies = bill.dependencies
  .filter(({ ref }, i) => i === 0 || kept.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => kept.has(other)) }));
process.stdout.write(`${JSON.stringify(bill, null, 2)}\n`);
