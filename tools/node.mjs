// Every program that npm scripts run loads this file first. It is plain JavaScript, so that a Node version without TypeScript
// support prints a readable message.
import { existsSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';

const modules = fileURLToPath(new URL('../node_modules', import.meta.url));
const [major, minor] = process.versions.node.split('.').map(Number);
let problem;
if (major < 22 || (major === 22 && minor < 22))
  problem = `Node ${process.versions.node} is too old, 22.22 or newer is needed. On Linux and Windows "npm ci" brings the right one and "npm run" uses it; elsewhere install Node 24.`;
else if (!existsSync(modules)) problem = 'the packages are not installed. Run "npm ci" first.';
if (problem) {
  console.error(`Cannot start: ${problem}`);
  process.exit(2);
}
// Without this cache, each process loads the TypeScript compiler, which takes longer than most commands.
nodeModule.enableCompileCache(`${modules}/.cache/node-compile-cache`);
