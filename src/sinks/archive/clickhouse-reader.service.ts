import type { ClickHouseClient } from '@clickhouse/client';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { ServiceError } from '../../errors/service-error.js';
import { SecretBoxError } from '../../platform/secret-box.js';
import { SinkSenders } from '../senders/open-sender.js';
import { type SinkAccess, SinkSecrets } from '../sink-secrets.service.js';
import { Sink } from '../sink.entity.js';
import type { ArchiveQuery } from './archive-query.js';

/** Values as the admin API writes them. */
const OUTPUT = {
  date_time_output_format: 'iso',
  output_format_json_quote_decimals: 1,
  output_format_decimal_trailing_zeros: 1,
  output_format_json_quote_64bit_integers: 0,
} as const;

/** What a query returns. */
export interface ArchiveResult<T> {
  data: T[];
  /** The sink that was read. */
  sink: Sink;
}

/** Queries the table of the sink that REQUEST_LOG_ARCHIVE names. */
@Injectable()
export class ClickHouseReader implements OnApplicationShutdown {
  private opened: { version: string; client: ClickHouseClient } | null = null;

  constructor(
    @InjectSettings() private readonly env: Settings,
    @InjectRepository(Sink) private readonly sinks: Repository<Sink>,
    private readonly senders: SinkSenders,
    private readonly secrets: SinkSecrets,
  ) {}

  async onApplicationShutdown(): Promise<void> {
    await this.opened?.client.close();
  }

  /** False: the setting names no archive. */
  get isNamed(): boolean {
    return this.env.requestLogArchive !== undefined;
  }

  /** @throws ServiceError conflict if there is no such sink, or it does not respond */
  async read<T>(queryOf: (table: string) => ArchiveQuery): Promise<ArchiveResult<T>> {
    const sink = await this.sink();
    const { clickHouseError, openClickHouse } = await import('../senders/clickhouse-sender.js');
    const version = `${sink.id}.${sink.version}`;
    if (this.opened?.version !== version) {
      const { opened } = this;
      this.opened = { version, client: openClickHouse(this.accessTo(sink), this.senders.connector()) };
      await opened?.client.close();
    }
    try {
      const query = { ...queryOf(sink.target!), format: 'JSON' as const, clickhouse_settings: OUTPUT };
      const { data } = await (await this.opened.client.query(query)).json<T>();
      return { data, sink };
    } catch (error) {
      const { message } = clickHouseError(error);
      throw new ServiceError(
        'conflict',
        `The archive, sink ${sink.name}, does not respond: ${message} Newer days can be read with from.`,
      );
    }
  }

  private accessTo({ id, name, sealed }: Sink): SinkAccess {
    try {
      return this.secrets.open(id, sealed);
    } catch (error) {
      if (!(error instanceof SecretBoxError)) throw error;
      throw new ServiceError(
        'conflict',
        `The secret of the archive, sink ${name}, cannot be decrypted: ${error.message}`,
      );
    }
  }

  private async sink(): Promise<Sink> {
    const name = this.env.requestLogArchive!;
    const sink = await this.sinks.findOneBy({ name });
    if (sink?.kind === 'clickhouse') return sink;
    throw new ServiceError(
      'conflict',
      `REQUEST_LOG_ARCHIVE names ${name}, which is no sink of the kind clickhouse. Add it, or change the setting.`,
    );
  }
}
