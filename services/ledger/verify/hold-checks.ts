import { isDeepStrictEqual } from 'node:util';
import type { EventData } from '#libs/contracts/events.ts';
import { toMinor } from '#libs/contracts/money.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { HoldState } from '../domain/records.ts';
import { holdColumns, toHoldState, uuids } from '../rows.ts';
import { describePlace, type EventAudit, eventRules, noteCopy, noteNumber, readEvents } from './event-checks.ts';

type HoldEvent = EventData<'corebanking.hold.placed.v1'>;

/** Checks events of holds in publication order: each state is possible, and no event is missing between two others. */
export async function checkHolds(messages: ReceivedMessage[], audit: EventAudit): Promise<void> {
  const read = readEvents<HoldEvent>('holds', messages, audit);
  if (read.length === 0) return;
  const { rows } = await audit.pool.query<HoldState>(
    `select ${holdColumns} from holds where hold_id = any($1::uuid[])`,
    [uuids(read.map(({ data }) => data.hold.hold_id))],
  );
  const holds = new Map(rows.map(toHoldState).map((hold) => [hold.hold_id, hold]));
  for (const { message, data } of read) {
    noteCopy(message, audit);
    const hold = holds.get(data.hold.hold_id);
    if (hold === undefined) audit.find(eventRules.committed, { ...describePlace(message), hold_id: data.hold.hold_id });
    else if (message.key !== hold.account_id || !canHaveBeen(data.hold, hold))
      audit.find(eventRules.same, { ...describePlace(message), hold_id: hold.hold_id });
    noteNumber(message, data.hold.account_id, 'hold_version', data.hold_version, audit);
  }
}

const fixed = ['account_id', 'currency', 'expires_at', 'created_at'] as const;
const texts = ['description', 'reference', 'external_id'] as const;

/** Reports whether the hold can have had the published state, given its current one. An ended hold does not change. */
function canHaveBeen(published: HoldEvent['hold'], now: HoldState): boolean {
  const captured = BigInt(toMinor(published.captured_amount, now.currency));
  const isSame =
    fixed.every((name) => published[name] === now[name]) &&
    texts.every((name) => (published[name] ?? null) === now[name]) &&
    isDeepStrictEqual(published.metadata ?? null, now.metadata) &&
    toMinor(published.amount, now.currency) === now.amount_minor;
  return (
    isSame &&
    (published.status === 'Active'
      ? captured <= now.captured_minor
      : published.status === now.status && captured === now.captured_minor)
  );
}
