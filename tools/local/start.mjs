// `npm start` runs this file. It is plain JavaScript, so that a Node version without TypeScript
// support prints a readable message.
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
