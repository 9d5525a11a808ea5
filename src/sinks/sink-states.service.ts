import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { describeError } from '../errors/describe-error.js';
import { OutageLog } from '../request-log/writer/outage-log.js';
import { Sink } from './sink.entity.js';

/** The sinks as this process last read them, for metrics, readiness and alerts. */
@Injectable()
export class SinkStates implements BeforeApplicationShutdown {
  all: readonly Sink[] = [];
  private readonly outage = new OutageLog(new Logger('Sinks'));
  private isStopping = false;

  constructor(@InjectRepository(Sink) private readonly sinks: Repository<Sink>) {}

  /** The connection of a query that is still under way is closed next. */
  beforeApplicationShutdown(): void {
    this.isStopping = true;
  }

  /** Never rejects: without Postgres the last states stay. */
  async refresh(): Promise<void> {
    try {
      this.all = await this.sinks.find();
      this.outage.ended('The sinks can be read again.');
    } catch (error) {
      if (!this.isStopping) this.outage.report('The sinks could not be read', describeError(error));
    }
  }
}
