import { OTHER_ID } from './refusal.entity.js';

const MINUTE_MS = 60_000;
/** Combinations of a minute that are counted by themselves; the others are added up by code. */
const MAX_A_MINUTE = 1_000;
/** Of one key: what a client sends, such as a name of a model, must not push out other keys. */
const MAX_A_KEY = 50;
/** Counts that cannot be stored for longer are dropped. */
const MAX_AGE_MS = 10 * MINUTE_MS;

/** Why a request was rejected. */
export interface Reason {
  team_id: string;
  key_id: string;
  code: string;
  /** limit_rule.nr; '0' for none. */
  rule_nr: string;
  /** Empty if it was not known yet, as `model`. */
  provider: string;
  model: string;
}

/** A row to add to `refusal`. */
export interface Count extends Reason {
  /** ISO 8601. */
  minute: string;
  calls: number;
  last_id: string;
  last_at: string;
}

interface Minute {
  readonly counts: Map<string, Count>;
  /** Combinations by key. */
  readonly ofKey: Map<string, number>;
}

/** Counts rejected requests in memory, bounded however many there are. */
export class RefusalCounts {
  private readonly minutes = new Map<number, Minute>();

  /** @param at epoch milliseconds @param id of the request */
  add(reason: Reason, id: string, at: number): void {
    const start = at - (at % MINUTE_MS);
    let minute = this.minutes.get(start);
    if (minute === undefined) this.minutes.set(start, (minute = { counts: new Map(), ofKey: new Map() }));
    const count = countOf(minute, reason, start);
    count.calls++;
    count.last_id = id;
    count.last_at = new Date(at).toISOString();
  }

  /** What was counted since the last call, in the order of the primary key. */
  take(now: number): Count[] {
    const taken: Count[] = [];
    for (const [start, { counts }] of this.minutes) {
      for (const count of counts.values()) {
        if (count.calls > 0) taken.push({ ...count });
        count.calls = 0;
      }
      // The present minute remembers its combinations, so that they stay bounded.
      if (start + MINUTE_MS <= now || start > now) this.minutes.delete(start);
    }
    return taken;
  }
}

/** Without the counts that are too old to be kept. */
export function recent(counts: readonly Count[], now: number): Count[] {
  return counts.filter(({ minute }) => Date.parse(minute) > now - MAX_AGE_MS);
}

/** Adds up what two lists have in common. */
export function merged(first: readonly Count[], second: readonly Count[]): Count[] {
  const all = new Map<string, Count>();
  for (const count of [...first, ...second]) {
    const name = `${count.minute} ${nameOf(count)}`;
    const known = all.get(name);
    all.set(name, known === undefined ? count : { ...count, calls: known.calls + count.calls });
  }
  return [...all.values()];
}

function countOf(minute: Minute, reason: Reason, start: number): Count {
  const name = nameOf(reason);
  const known = minute.counts.get(name);
  if (known !== undefined) return known;
  const ofKey = minute.ofKey.get(reason.key_id) ?? 0;
  if (reason.key_id !== OTHER_ID && (minute.counts.size >= MAX_A_MINUTE || ofKey >= MAX_A_KEY)) {
    const { code } = reason;
    const others = { team_id: OTHER_ID, key_id: OTHER_ID, code, rule_nr: '0', provider: '', model: '' };
    return countOf(minute, others, start);
  }
  const count = { ...reason, minute: new Date(start).toISOString(), calls: 0, last_id: '', last_at: '' };
  minute.counts.set(name, count);
  minute.ofKey.set(reason.key_id, ofKey + 1);
  return count;
}

function nameOf({ team_id, key_id, code, rule_nr, provider, model }: Reason): string {
  return `${team_id} ${key_id} ${code} ${rule_nr} ${provider} ${model}`;
}
