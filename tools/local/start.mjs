// What `npm start` runs: plain JavaScript, so that a Node too old for TypeScript files gets a message it can read.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 22)) {
  console.error(
    `Cannot start: Node ${process.versions.node} is too old, 22.22 or newer is needed. ` +
      'On Linux and Windows "npm ci" brings the right one and "npm start" uses it; elsewhere install Node 24.',
  );
  process.exit(1);
}
const { main } = await import('./start.ts');
await main();
