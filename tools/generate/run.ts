import { writeFileSync } from 'node:fs';
import { pages } from './pages.ts';

/** Writes every page of docs/ that is made from the code; a test tells when it was forgotten. */
for (const [name, page] of Object.entries(pages)) writeFileSync(new URL(`../../docs/${name}`, import.meta.url), page());
