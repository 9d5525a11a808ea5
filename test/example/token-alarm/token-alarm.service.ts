import { Inject, Injectable, Logger } from '@nestjs/common';
import { type FinishedCall, FinishedCalls } from '../../../src/request-log/finished-calls.js';

export const TOKENS_PER_DAY = Symbol('tokens per day');

/** Logs a warning, once a day, for each team that uses too many tokens. Counts the calls of this process. */
@Injectable()
export class TokenAlarmService {
  private readonly logger = new Logger('TokenAlarm');
  private readonly used = new Map<string, number>();
  private day = '';

  constructor(
    finished: FinishedCalls,
    @Inject(TOKENS_PER_DAY) private readonly limit: number,
  ) {
    finished.listen('token alarm', (call) => this.count(call));
  }

  private count({ row }: FinishedCall): void {
    const day = row.started_at.slice(0, 10);
    if (day > this.day) {
      this.day = day;
      this.used.clear();
    }
    const before = this.used.get(row.team_id) ?? 0;
    const now = before + (row.prompt_tokens ?? 0) + (row.completion_tokens ?? 0);
    this.used.set(row.team_id, now);
    if (before <= this.limit && now > this.limit) {
      this.logger.warn(`Team ${row.team_id} has used ${now} tokens today; the limit is ${this.limit}.`);
    }
  }
}
