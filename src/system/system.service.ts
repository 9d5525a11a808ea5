import { Injectable } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { declaredIn, InjectSettings } from '../config/config.module.js';
import { envSchema, SECRET_VARIABLES } from '../config/env-schema.js';
import { ServiceError } from '../errors/service-error.js';
import { modulesIn } from '../config/features.js';
import { parseModuleSettings } from '../config/module-settings.js';
import { type Settings, settingsByName } from '../config/settings.js';
import { ReadinessService } from '../observability/readiness.service.js';
import { packageChangelog, packageCommit, packageVersion } from '../platform/package-root.js';
import { Journal } from '../request-log/journal/journal.js';
import { LogWriter } from '../request-log/writer/log-writer.js';
import type { SystemView } from './system.schema.js';

const DATABASE = `
  SELECT current_setting('server_version') AS version, pg_database_size(current_database())::float8 AS bytes,
         (SELECT cursor FROM usage_rollup) AS usage_as_of`;
/** Each process has one connection of this name. */
const PROCESSES = `
  SELECT host(client_addr) AS address, backend_start AS connected_at FROM pg_stat_activity
  WHERE datname = current_database() AND application_name LIKE 'postern-changes%' ORDER BY backend_start`;
const PARTITIONS = `
  SELECT c.relname AS name, pg_total_relation_size(c.oid)::float8 AS bytes, NULLIF(c.reltuples, -1)::float8 AS rows
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = 'request_log'::regclass ORDER BY c.relname DESC`;

/** Secrets, and URLs that may contain one. */
const HIDDEN: readonly string[] = [
  ...SECRET_VARIABLES,
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
];

type Found = SystemView['database'] & { usage_as_of: Date | null };

/** Shows the state of this process and of what all processes share. */
@Injectable()
export class SystemService {
  /** When this process started: the clone may have moved on since. */
  private readonly commit = packageCommit();

  constructor(
    private readonly dataSource: DataSource,
    private readonly readiness: ReadinessService,
    private readonly journal: Journal,
    private readonly writer: LogWriter,
    private readonly modules: ModulesContainer,
    @InjectSettings() private readonly env: Settings,
  ) {}

  async show(): Promise<SystemView> {
    const [found] = await this.dataSource.query<[Found]>(DATABASE);
    const processes =
      await this.dataSource.query<{ address: string | null; connected_at: Date }[]>(PROCESSES);
    const { journal, writer } = this;
    return {
      version: packageVersion(),
      commit: this.commit,
      node: process.version,
      started_at: new Date(performance.timeOrigin).toISOString(),
      ...(await this.readiness.now()),
      journal: {
        accepting: journal.accepting,
        degraded: journal.degraded,
        bytes: journal.bytes,
        oldest_seconds: journal.oldestMs / 1_000,
      },
      log_writer: {
        persisted: writer.counts.persisted,
        waiting: writer.waiting,
        spilled: writer.counts.spilled,
        rejected: writer.counts.rejected,
        failing_seconds: writer.failingMs / 1_000,
      },
      usage_as_of: found.usage_as_of?.toISOString() ?? null,
      database: { version: found.version, bytes: found.bytes },
      processes: processes.map((row) => ({ ...row, connected_at: row.connected_at.toISOString() })),
      partitions: await this.dataSource.query<SystemView['partitions']>(PARTITIONS),
      modules: modulesIn(this.modules),
      settings: this.settings(),
    };
  }

  /** @throws ServiceError not_found */
  changelog(): string {
    try {
      return packageChangelog();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      throw ServiceError.of('not_found', 'changelog', 'CHANGELOG.md is not where this gateway is installed');
    }
  }

  private settings(): SystemView['settings'] {
    const defaults: Record<string, unknown> = { ...parseModuleSettings(declaredIn(this.modules), {}, []) };
    for (const [name, schema] of Object.entries(envSchema.shape))
      defaults[name] = schema.safeParse(undefined).data;
    return Object.entries(settingsByName(this.env)).map(([name, value]) => {
      // A module may have secrets that it does not declare as such.
      const hidden = !(name in envSchema.shape) || HIDDEN.includes(name);
      const changed = shown(value) !== shown(defaults[name]);
      return { name, changed, hidden, value: hidden ? null : shown(value) };
    });
  }
}

/** As .env has it; null: not set. Only compared if it is hidden. */
function shown(value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (Array.isArray(value)) return value.length === 0 ? null : value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}
