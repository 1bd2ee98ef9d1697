// `npm start` runs this file.
import '../node.mjs';

const { main } = await import('./start.ts');
await main();
