// `npm run bank` runs this file.
import '../tools/node.mjs';

await import('./bank.ts');
