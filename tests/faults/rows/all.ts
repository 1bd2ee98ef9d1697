import type { Row } from '../row.ts';
import { kills } from './kills.ts';
import { rollouts } from './rollouts.ts';
import { servers } from './servers.ts';

/** Every row, in the order in which a run takes them. */
export const rows: Row[] = [...kills, ...servers, ...rollouts];
