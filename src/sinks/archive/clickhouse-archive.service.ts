import type { ClickHouseClient } from '@clickhouse/client';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { ServiceError } from '../../errors/service-error.js';
import { KeyNames } from '../../keys/key-names.service.js';
import { COLUMN_NAMES, COLUMNS } from '../../request-log/columns.js';
import { type ArchivePage, type ArchiveReader, LogArchive } from '../../requests/log-archive.js';
import type { RequestFilter } from '../../requests/request-query.js';
import { isShownName, type RequestView, SHOWN_COLUMNS } from '../../requests/request-view.js';
import { SinkSenders } from '../senders/open-sender.js';
import { SinkSecrets } from '../sink-secrets.service.js';
import { SELECT_SINKS, type SinkRow } from '../sink-view.js';
import { type ArchiveQuery, findQuery, listQuery } from './archive-query.js';

/** Values as the admin API writes them. */
const OUTPUT = {
  date_time_output_format: 'iso',
  output_format_json_quote_decimals: 1,
  output_format_decimal_trailing_zeros: 1,
  output_format_json_quote_64bit_integers: 0,
} as const;

const JSON_COLUMNS: readonly string[] = COLUMN_NAMES.filter((name) => COLUMNS[name].type === 'jsonb');
const FIND = `${SELECT_SINKS} WHERE name = $1`;

type ArchiveRow = Record<string, unknown> & { team_id: string; key_id: string };

/** Reads the table of the sink that REQUEST_LOG_ARCHIVE names. */
@Injectable()
export class ClickHouseArchive implements ArchiveReader, OnApplicationShutdown {
  private opened: { version: string; client: ClickHouseClient } | null = null;

  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly dataSource: DataSource,
    private readonly names: KeyNames,
    private readonly senders: SinkSenders,
    private readonly secrets: SinkSecrets,
    archive: LogArchive,
  ) {
    if (env.requestLogArchive !== undefined) archive.reader = this;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.opened?.client.close();
  }

  async list(filter: RequestFilter, page: ArchivePage): Promise<RequestView[]> {
    return this.views(await this.read((table) => listQuery(table, filter, page)));
  }

  async get(id: string, startedAt: Date, teams: readonly string[] | null): Promise<RequestView | null> {
    const rows = await this.read((table) => findQuery(table, id, startedAt));
    const visible = rows.filter(({ team_id }) => teams === null || teams.includes(team_id));
    return (await this.views(visible))[0] ?? null;
  }

  private async read(queryOf: (table: string) => ArchiveQuery): Promise<ArchiveRow[]> {
    const sink = await this.sink();
    const { clickHouseError, openClickHouse } = await import('../senders/clickhouse-sender.js');
    const version = `${sink.id}.${sink.version}`;
    if (this.opened?.version !== version) {
      await this.opened?.client.close();
      const access = this.secrets.open(sink.id, sink.sealed);
      this.opened = { version, client: openClickHouse(access, this.senders.connector()) };
    }
    try {
      const query = { ...queryOf(sink.target!), format: 'JSON' as const, clickhouse_settings: OUTPUT };
      return (await (await this.opened.client.query(query)).json<ArchiveRow>()).data;
    } catch (error) {
      const { message } = clickHouseError(error);
      throw new ServiceError(
        'conflict',
        `The archive, sink ${sink.name}, does not respond: ${message} Newer days can be read with from.`,
      );
    }
  }

  private async sink(): Promise<SinkRow> {
    const name = this.env.requestLogArchive!;
    const [sink] = await this.dataSource.query<SinkRow[]>(FIND, [name]);
    if (sink?.kind === 'clickhouse') return sink;
    throw new ServiceError(
      'conflict',
      `REQUEST_LOG_ARCHIVE names ${name}, which is no sink of the kind clickhouse. Add it, or change the setting.`,
    );
  }

  /** With the present names of teams and keys, as rows of the log are shown. */
  private async views(rows: readonly ArchiveRow[]): Promise<RequestView[]> {
    const teams = await this.names.ofTeams(rows.map(({ team_id }) => team_id));
    const keys = await this.names.ofKeys(rows.map(({ key_id }) => key_id));
    return rows.map((row) => {
      for (const name of JSON_COLUMNS) {
        const text = row[name];
        if (typeof text === 'string') Object.assign(row, { [name]: JSON.parse(text) as unknown });
      }
      const names = { team: teams.get(row.team_id) ?? null, key: keys.get(row.key_id)?.name ?? null };
      return Object.fromEntries(
        SHOWN_COLUMNS.map((name) => [name, isShownName(name) ? names[name] : (row[name] ?? null)]),
      ) as RequestView;
    });
  }
}
