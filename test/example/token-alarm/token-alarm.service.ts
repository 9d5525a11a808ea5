import { Injectable, Logger } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { type FinishedCall, FinishedCalls, KeyNames, MetricsService } from '../../../src/index.js';

/** Logs a warning, once a day, for each team that uses too many tokens. Counts the calls of this process. */
@Injectable()
export class TokenAlarmService {
  private readonly logger = new Logger('TokenAlarm');
  private readonly limit: number;
  private readonly used = new Map<string, number>();
  private day = '';
  private alarms = 0;

  constructor(
    finished: FinishedCalls,
    config: ConfigService,
    private readonly names: KeyNames,
    { instruments }: MetricsService,
  ) {
    this.limit = config.getOrThrow<number>('TOKEN_ALARM_PER_DAY');
    instruments.counter('token_alarms_total', 'Warnings about teams.', () => this.alarms);
    finished.listen('token alarm', (call) => this.count(call));
  }

  private count({ row }: FinishedCall): Promise<void> | undefined {
    const day = row.started_at.slice(0, 10);
    if (day > this.day) {
      this.day = day;
      this.used.clear();
    }
    const before = this.used.get(row.team_id) ?? 0;
    const now = before + (row.prompt_tokens ?? 0) + (row.completion_tokens ?? 0);
    this.used.set(row.team_id, now);
    return before <= this.limit && now > this.limit ? this.warn(row.team_id, now) : undefined;
  }

  private async warn(teamId: string, used: number): Promise<void> {
    this.alarms++;
    const team = (await this.names.ofTeams([teamId])).get(teamId) ?? teamId;
    this.logger.warn(`Team ${team} has used ${used} tokens today; the limit is ${this.limit}.`);
  }
}
