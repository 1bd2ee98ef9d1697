import type { ErrorCode } from '#libs/contracts/errors.ts';

/** An activity of interest to auditors or a SIEM. Many of them may occur in a minute. */
export interface Activity {
  /** `unauthenticated` if the request had no valid credentials. */
  actor: string;
  /** null if a summary covers several addresses. */
  address: string | null;
  action: string;
  outcome: 'success' | ErrorCode;
  resource_id: string | null;
  request_id: string;
  method: string;
  path: string;
  /** Also written to the audit log, not only to the topic `security`. */
  isAudited: boolean;
}

/** The number of times that an activity occurred. Resource and request are those of the first occurrence. */
export interface Summary extends Activity {
  count: number;
  since: string;
}

export const unauthenticatedActor = 'unauthenticated';
const various = 'various';

/** The maximum number of summaries per call of take(): the most frequent ones. The others are combined by outcome. */
const maxOfStrangers = 20;
const maxOfCallers = 200;
/**
 * The maximum number of distinct activities between two calls. Beyond it, details are omitted so that memory stays
 * bounded.
 */
const maxKept = 10_000;

/**
 * Counts activities by address, caller, route, and outcome. The number of summaries is bounded, whatever the
 * number of callers and addresses, so unauthenticated requests add at most some dozens of audit records per
 * minute.
 */
export class Activities {
  #counted = new Map<string, Summary>();

  add(activity: Activity, at: string): void {
    const isRoom = this.#counted.size < maxKept || this.#counted.has(activityKey(activity));
    addTo(this.#counted, { ...(isRoom ? activity : folded(activity)), count: 1, since: at });
  }

  /** Returns the summaries of all activities since the last call. */
  take(): Summary[] {
    const [counted, taken] = [
      [...this.#counted.values()].sort((a, b) => b.count - a.count),
      new Map<string, Summary>(),
    ];
    this.#counted = new Map();
    const room = { strangers: maxOfStrangers, callers: maxOfCallers };
    for (const summary of counted) {
      const hasRoom =
        summary.action === various || room[summary.actor === unauthenticatedActor ? 'strangers' : 'callers']-- > 0;
      addTo(taken, hasRoom ? summary : { ...folded(summary), count: summary.count, since: summary.since });
    }
    return [...taken.values()];
  }
}

function addTo(summaries: Map<string, Summary>, summary: Summary): void {
  const key = activityKey(summary);
  const known = summaries.get(key);
  if (!known) return void summaries.set(key, summary);
  known.count += summary.count;
  if (summary.since < known.since) known.since = summary.since;
}

/** Refusals because of a destination are also counted by destination, because someone may be searching for accounts. */
function activityKey({ address, actor, action, outcome, resource_id }: Activity): string {
  return JSON.stringify([address, actor, action, outcome, outcome === 'destination_refused' ? resource_id : null]);
}

function folded(activity: Activity): Activity {
  const actor = activity.actor === unauthenticatedActor ? unauthenticatedActor : various;
  return { ...activity, actor, address: null, action: various, resource_id: null, method: various, path: various };
}
