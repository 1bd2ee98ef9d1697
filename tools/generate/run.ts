import { writeFileSync } from 'node:fs';
import { pages } from './pages.ts';

/** Writes every generated file. A test fails if this was forgotten. */
for (const [name, page] of Object.entries(pages)) writeFileSync(new URL(`../../docs/${name}`, import.meta.url), page());
