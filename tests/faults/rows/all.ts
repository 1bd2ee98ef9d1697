import type { Row } from '../row.ts';
import { approvalRows } from './approvals.ts';
import { closingRows } from './closings.ts';
import { combined } from './combined.ts';
import { disks } from './disks.ts';
import { freezes } from './freezes.ts';
import { holdRows } from './holds.ts';
import { kills } from './kills.ts';
import { links } from './links.ts';
import { oddMessages } from './poison.ts';
import { redelivery } from './redelivery.ts';
import { restores } from './restores.ts';
import { rollouts } from './rollouts.ts';
import { servers } from './servers.ts';
import { starts } from './starts.ts';
import { storms } from './storms.ts';
import { webhookRows } from './webhooks.ts';

/** Every row, in the order of a run. */
export const rows: Row[] = [
  ...kills,
  ...holdRows,
  ...closingRows,
  ...approvalRows,
  ...webhookRows,
  ...servers,
  ...rollouts,
  ...freezes,
  ...links,
  ...redelivery,
  ...oddMessages,
  ...disks,
  ...starts,
  ...combined,
  ...storms,
  // Afterwards, events have copies with other posting times.
  ...restores,
];
