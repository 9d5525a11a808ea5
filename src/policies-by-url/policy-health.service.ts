import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import { Durations } from '../observability/durations.js';
import { FailingSpell } from '../platform/failing-spell.js';
import { DecisionLog, type Rule } from './decision/rule.js';

const EVERY_MS = 5_000;
/** A policy that has failed for so long is announced. */
const FAILING_MS = 60_000;
/** Seconds. */
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** In place of other reasons of failures. */
const OVERLOADED = 'overloaded';

/** At most once an hour for each policy, whichever process is the first. */
const EMIT = `
  SELECT webhook_emit('policy.failing', $1::jsonb, format('policy.failing %s %s', $2::text, date_trunc('hour', now())))`;

/** What a policy has decided since the start of this process. */
interface Counts {
  readonly decisions: Map<string, number>;
  readonly failures: Map<string, number>;
  readonly durations: Durations;
  readonly spell: FailingSpell;
}

interface Failing {
  policy: string;
  policy_id: string;
  on_failure: Rule['onFailure'];
  reason: string;
}

/** Counts what policies decide, and announces one that has failed for a minute. */
@Injectable()
export class PolicyHealth extends DecisionLog {
  /** By the name of the policy. */
  readonly counts = new Map<string, Counts>();
  private readonly logger = new Logger('Policies');
  /** Not stored yet: Postgres may be unavailable. By the ID of the policy. */
  private readonly pending = new Map<string, Failing>();

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
  ) {
    super();
  }

  decided({ name }: Rule, isAllowed: boolean, ms: number | null): void {
    const { decisions, durations, spell } = this.of(name);
    increase(decisions, `${isAllowed ? 'allowed' : 'rejected'} ${ms === null ? 'cache' : 'receiver'}`);
    if (ms === null) return;
    durations.add(ms);
    spell.succeeded();
  }

  /** @param now monotonic ms */
  failed({ id, name, onFailure }: Rule, code: string, ms: number, now = performance.now()): void {
    const { failures, durations, spell } = this.of(name);
    increase(failures, code);
    durations.add(ms);
    if (spell.ms(now) === 0)
      this.logger.warn(
        `Policy ${name} does not decide (${code}); its calls are ${onFailure === 'allow' ? 'forwarded' : 'rejected'}.`,
      );
    spell.failed(now);
    if (spell.ms(now) >= FAILING_MS)
      this.pending.set(id, { policy: name, policy_id: id, on_failure: onFailure, reason: code });
  }

  overloaded({ name }: Rule): void {
    increase(this.of(name).failures, OVERLOADED);
  }

  @Interval(EVERY_MS)
  async announce(): Promise<void> {
    if (this.pending.size === 0 || this.database.notReady !== null) return;
    for (const [id, failing] of this.pending) {
      try {
        await this.dataSource.query(EMIT, [JSON.stringify(failing), id]);
        this.pending.delete(id);
      } catch (error) {
        this.logger.warn(`An alert could not be stored, trying again: ${describeError(error)}`);
        return;
      }
    }
  }

  private of(name: string): Counts {
    const known = this.counts.get(name);
    if (known !== undefined) return known;
    const counts = {
      decisions: new Map<string, number>(),
      failures: new Map<string, number>(),
      durations: new Durations(BOUNDS),
      spell: new FailingSpell(),
    };
    this.counts.set(name, counts);
    return counts;
  }
}

function increase(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
