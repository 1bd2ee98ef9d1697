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
/** Refused destinations, which callers choose, take no room of other refusals. */
const maxOfDestinations = 200;
/** The maximum number of distinct actions that an application for staff reports about one person. */
const maxReported = 10;
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
  /** The reported actions of each actor. */
  #reported = new Map<string, Set<string>>();

  add(activity: Activity, at: string): void {
    const shown = this.#boundReported(activity);
    const isRoom = this.#counted.size < maxKept || this.#counted.has(activityKey(shown));
    addTo(this.#counted, { ...(isRoom ? shown : folded(shown)), count: 1, since: at });
  }

  /** Combines what is reported about one person beyond the limit, so that it takes no room of others. */
  #boundReported(activity: Activity): Activity {
    const { actor, action } = activity;
    if (!isReported(action)) return activity;
    const key = activityKey(activity);
    const known = this.#reported.get(actor) ?? new Set();
    if (known.has(key)) return activity;
    if (known.size >= maxReported) return { ...activity, address: null, action: `page:${various}` };
    this.#reported.set(actor, known.add(key));
    return activity;
  }

  /** Returns the summaries of all activities since the last call. */
  take(): Summary[] {
    const [counted, taken] = [
      [...this.#counted.values()].sort((a, b) => b.count - a.count),
      new Map<string, Summary>(),
    ];
    this.#counted = new Map();
    this.#reported = new Map();
    const room = { strangers: maxOfStrangers, callers: maxOfCallers, destinations: maxOfDestinations };
    for (const summary of counted) {
      const hasRoom = summary.action === various || room[roomFor(summary)]-- > 0;
      addTo(taken, hasRoom ? summary : { ...folded(summary), count: summary.count, since: summary.since });
    }
    return [...taken.values()];
  }
}

/** Reported actions are `page:` or `form:` and a path; those of the API are names of endpoints. */
const isReported = (action: string): boolean => action.includes(':');

function roomFor({ actor, outcome }: Activity): 'strangers' | 'callers' | 'destinations' {
  if (actor === unauthenticatedActor) return 'strangers';
  return outcome === 'destination_refused' ? 'destinations' : 'callers';
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
