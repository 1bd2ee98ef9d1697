import type { ErrorCode } from '#libs/contracts/errors.ts';

/** Something that auditors or a SIEM ask about, of which many may happen in a minute. */
export interface Activity {
  /** `unauthenticated` for strangers. */
  actor: string;
  /** null: several ones. */
  address: string | null;
  action: string;
  outcome: 'success' | ErrorCode;
  resource_id: string | null;
  request_id: string;
  method: string;
  path: string;
  /** For the audit too, and not only for the topic `security`. */
  isAudited: boolean;
}

/** The same activity, so many times. Resource and request are those of the first one. */
export interface Summary extends Activity {
  count: number;
  since: string;
}

export const stranger = 'unauthenticated';
const various = 'various';

/** Summaries of one take at most, the most frequent ones; all others are added up by outcome. */
const maxOfStrangers = 20;
const maxOfCallers = 200;
/** Kept apart between two takes: memory is bounded before detail is. */
const maxKept = 10_000;

/**
 * Counts activities by address, caller, route and outcome. However many callers and addresses there
 * are, what is taken is bounded: strangers cannot make the audit grow by more than some dozens of
 * records a minute.
 */
export class Activities {
  #counted = new Map<string, Summary>();

  add(activity: Activity, at: string): void {
    const isRoom = this.#counted.size < maxKept || this.#counted.has(keyOf(activity));
    addTo(this.#counted, { ...(isRoom ? activity : folded(activity)), count: 1, since: at });
  }

  /** What was counted since the last take. */
  take(): Summary[] {
    const [counted, taken] = [
      [...this.#counted.values()].sort((a, b) => b.count - a.count),
      new Map<string, Summary>(),
    ];
    this.#counted = new Map();
    const room = { strangers: maxOfStrangers, callers: maxOfCallers };
    for (const summary of counted) {
      const hasRoom = summary.action === various || room[summary.actor === stranger ? 'strangers' : 'callers']-- > 0;
      addTo(taken, hasRoom ? summary : { ...folded(summary), count: summary.count, since: summary.since });
    }
    return [...taken.values()];
  }
}

function addTo(summaries: Map<string, Summary>, summary: Summary): void {
  const key = keyOf(summary);
  const known = summaries.get(key);
  if (!known) return void summaries.set(key, summary);
  known.count += summary.count;
  if (summary.since < known.since) known.since = summary.since;
}

/** What is refused because of its destination is counted by destination too: somebody may be looking for accounts. */
function keyOf({ address, actor, action, outcome, resource_id }: Activity): string {
  return JSON.stringify([address, actor, action, outcome, outcome === 'destination_refused' ? resource_id : null]);
}

function folded(activity: Activity): Activity {
  const actor = activity.actor === stranger ? stranger : various;
  return { ...activity, actor, address: null, action: various, resource_id: null, method: various, path: various };
}
