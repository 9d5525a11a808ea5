import { Injectable, Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { describeError } from '../errors/describe-error.js';
import { OutageLog } from '../request-log/writer/outage-log.js';
import { SELECT_SINKS, type SinkRow } from './sink-view.js';

/** The sinks as this process last read them, for metrics, readiness and alerts. */
@Injectable()
export class SinkStates {
  all: readonly SinkRow[] = [];
  private readonly outage = new OutageLog(new Logger('Sinks'));

  constructor(private readonly dataSource: DataSource) {}

  /** Never rejects: without Postgres the last states stay. */
  async refresh(): Promise<void> {
    try {
      this.all = await this.dataSource.query<SinkRow[]>(SELECT_SINKS);
      this.outage.ended('The sinks can be read again.');
    } catch (error) {
      this.outage.report('The sinks could not be read', describeError(error));
    }
  }
}
