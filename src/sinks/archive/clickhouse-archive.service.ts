import { Injectable } from '@nestjs/common';
import { KeyNames } from '../../keys/key-names.service.js';
import { COLUMN_NAMES, COLUMNS } from '../../request-log/columns.js';
import { type ArchivePage, type ArchiveReader, LogArchive } from '../../requests/log-archive.js';
import type { RequestFilter } from '../../requests/request-query.js';
import { isShownName, type RequestView, SHOWN_COLUMNS } from '../../requests/request-view.js';
import { findQuery, listQuery, newestQuery } from './archive-query.js';
import { ClickHouseReader } from './clickhouse-reader.service.js';

const JSON_COLUMNS: readonly string[] = COLUMN_NAMES.filter((name) => COLUMNS[name].type === 'jsonb');

type ArchiveRow = Record<string, unknown> & { team_id: string; key_id: string };

/** Reads rows of the archive. */
@Injectable()
export class ClickHouseArchive implements ArchiveReader {
  constructor(
    private readonly clickhouse: ClickHouseReader,
    private readonly names: KeyNames,
    archive: LogArchive,
  ) {
    if (clickhouse.isNamed) archive.reader = this;
  }

  async list(filter: RequestFilter, page: ArchivePage): Promise<RequestView[]> {
    const { data } = await this.clickhouse.read<ArchiveRow>((table) => listQuery(table, filter, page));
    return this.views(data);
  }

  async newest(filter: RequestFilter, before: Date): Promise<Date | null> {
    const { data } = await this.clickhouse.read<{ newest: string | null }>((table) =>
      newestQuery(table, filter, before),
    );
    const newest = data[0]?.newest;
    return newest == null ? null : new Date(newest);
  }

  async get(id: string, startedAt: Date, teams: readonly string[] | null): Promise<RequestView | null> {
    const { data } = await this.clickhouse.read<ArchiveRow>((table) => findQuery(table, id, startedAt));
    const visible = data.filter(({ team_id }) => teams === null || teams.includes(team_id));
    return (await this.views(visible))[0] ?? null;
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
