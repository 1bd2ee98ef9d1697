import { spawnSync } from 'node:child_process';

/**
 * Prints the CycloneDX bill of the production dependencies: everything in the lock file except development
 * dependencies and, like the image, optional ones, which only `npm start` needs. It does not use `--omit dev`, because npm 11.19 then omits production packages that a development tool
 * also lists as peers.
 */
interface Bill {
  components: { 'bom-ref': string; scope?: string; properties?: { name: string; value: string }[] }[];
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
  ({ scope, properties = [] }) =>
    scope !== 'optional' &&
    !properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true'),
);
const kept = new Set(bill.components.map((component) => component['bom-ref']));
bill.dependencies = bill.dependencies
  .filter(({ ref }, i) => i === 0 || kept.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => kept.has(other)) }));
process.stdout.write(`${JSON.stringify(bill, null, 2)}\n`);
