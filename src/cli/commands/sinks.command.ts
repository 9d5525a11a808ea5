import { Command } from 'commander';
import type { Page } from '../../database/page.js';
import { cliCommand } from '../../platform/cli-command.js';
import type { SinkView } from '../../sinks/sinks.schema.js';
import { path } from '../api.js';
import { CliError } from '../cli-error.js';
import type { Style } from '../output.js';
import { readSecret } from '../prompt.js';
import { action, type Session } from '../session.js';
import type { Column } from '../table.js';
import { minuteTime, parseTime } from '../times.js';

const ARGUMENT = ['<sink>', 'name or ID of the sink'] as const;

interface AddOptions {
  url: string;
  target?: string;
  secret?: boolean;
  from?: string;
}

interface UpdateOptions {
  name?: string;
  url?: string;
  target?: string;
  /** --secret, --no-secret, or neither. */
  secret?: boolean;
}

/** `postern sinks …` */
export function sinksCommand(): Command {
  const sinks = new Command('sinks').description(
    'systems beyond Postgres that get every row of the request log',
  );

  sinks
    .command('list')
    .description('list sinks with their state')
    .option('--wide', 'print every column in full, also if the terminal is narrower')
    .option('--json', 'print the list as JSON')
    .addHelpText('after', '\nExample:\n  postern sinks list')
    .action(
      action(async ({ api, out }) => {
        const page = await api.get<Page<SinkView>>('sinks');
        out.page(page, { noun: 'sinks', columns: COLUMNS });
      }),
    );

  sinks
    .command('add')
    .description('add a sink, which gets the rows of the log from the oldest one on')
    .argument('<name>', 'a name for it')
    .argument('<kind>', 'clickhouse, jetstream or http')
    .requiredOption('--url <url>', 'its address, without user and password')
    .option('--target <target>', 'table of ClickHouse, or subject of JetStream')
    .option('--secret', 'prompt for the secret, or read it from standard input')
    .option('--from <time>', 'only rows recorded then or later: 7d, today, now, 2030-01-31')
    .option('--json', 'print the sink as JSON')
    .addHelpText(
      'after',
      `
The secret is user:password for ClickHouse; user:password, a token, or the text
of a credentials file for JetStream; and a bearer token for http.

Examples:
  postern sinks add warehouse clickhouse --url https://clickhouse.example.com:8443 --target postern.request_log --secret
  postern sinks add stream jetstream --url tls://nats.example.com:4222 --target postern.requests
  postern sinks add receiver http --url https://rows.example.com/postern --from today`,
    )
    .action(action(add));

  sinks
    .command('update')
    .description('change the name, the URL, the target or the secret of a sink; its kind stays')
    .argument(...ARGUMENT)
    .option('--name <name>', 'a new name')
    .option('--url <url>', 'its address, without user and password')
    .option('--target <target>', 'table of ClickHouse, or subject of JetStream')
    .option('--secret', 'replace the secret: prompts for it, or reads it from standard input')
    .option('--no-secret', 'remove the secret')
    .option('--json', 'print the sink as JSON')
    .addHelpText(
      'after',
      `
Here --url is that of the sink. A URL on another host needs the secret again: add --secret.

Example:
  postern sinks update warehouse --secret < new-clickhouse.key`,
    )
    .action(action(update));

  for (const [name, enabled, about] of [
    ['pause', false, 'send nothing to a sink; rows may then be deleted that it has not taken'],
    ['resume', true, 'go on with the row after the last one that the sink has'],
  ] as const) {
    sinks
      .command(name)
      .description(about)
      .argument(...ARGUMENT)
      .option('--json', 'print the sink as JSON')
      .addHelpText('after', `\nExample:\n  postern sinks ${name} warehouse`)
      .action(
        action(async ({ api, out }, _, sink) => {
          const view = await api.patch<SinkView>(path('sinks', sink), { enabled });
          out.result(view, () => `${enabled ? 'Resumed' : 'Paused'} sink ${view.name}.`);
        }),
      );
  }

  sinks
    .command('replay')
    .description('send rows again')
    .argument(...ARGUMENT)
    .requiredOption('--from <time>', 'rows recorded then or later: 24h, 7d, yesterday, 2030-01-31')
    .option('--json', 'print the sink as JSON')
    .addHelpText(
      'after',
      `
ClickHouse replaces the rows that it has. A stream gets new messages, and an
HTTP receiver new requests.

Example:
  postern sinks replay warehouse --from 2030-01-31`,
    )
    .action(
      action<{ from: string }>(async ({ api, out }, { from }, sink) => {
        const body = { from: parseTime(from, -1, '--from', await api.zone()) };
        const view = await api.post<SinkView>(path('sinks', sink, 'replay'), body);
        out.result(view, () => `Sink ${view.name} gets the rows from ${view.recorded_until} on again.`);
      }),
    );

  sinks
    .command('remove')
    .description('remove a sink; the rows that it has stay there')
    .argument(...ARGUMENT)
    .option('--yes', 'do not ask')
    .option('--json', 'print the name as JSON')
    .addHelpText('after', '\nExample:\n  postern sinks remove warehouse')
    .action(
      action(async (session, _, sink) => {
        await session.confirm(`Remove the sink ${sink}? It gets no more rows.`);
        await session.api.delete(path('sinks', sink));
        session.out.result({ removed: sink }, () => `Removed sink ${sink}.`);
      }),
    );

  sinks
    .command('ddl')
    .description('print the statements that create the table of a sink')
    .argument('<kind>', 'clickhouse')
    .option('--table <table>', 'name of the table', 'request_log')
    .option('--cluster <name>', 'for replicated tables on this cluster')
    .addHelpText(
      'after',
      `
Examples:
  postern sinks ddl clickhouse --table postern.request_log | clickhouse client --multiquery
  postern sinks ddl clickhouse --table postern.request_log --cluster main`,
    )
    .action(async (kind: string, { table, cluster }: { table: string; cluster?: string }) => {
      if (kind !== 'clickhouse')
        throw new CliError('only clickhouse has tables: postern sinks ddl clickhouse');
      if (!/^[A-Za-z_]\w*(\.[A-Za-z_]\w*)?$/.test(table))
        throw new CliError('--table must be the name of a table, with its database or without');
      if (cluster !== undefined && !/^[\w.{}-]+$/.test(cluster))
        throw new CliError('--cluster must be the name of a cluster');
      const { clickhouseDdl } = await import('../../sinks/clickhouse-table.js');
      process.stdout.write(clickhouseDdl({ table, ...(cluster !== undefined && { cluster }) }));
    });

  return sinks;
}

async function add(
  { api, out }: Session,
  { url, target, secret, from }: AddOptions,
  name?: string,
  kind?: string,
) {
  const view = await api.post<SinkView>('sinks', {
    ...{ name, kind, url },
    ...(target !== undefined && { target }),
    ...(secret === true && { secret: (await readSecret('Secret')).trim() }),
    ...(from !== undefined && { from: parseTime(from, -1, '--from', await api.zone()) }),
  });
  out.result(view, () => `Added sink ${view.name} (${view.url}).`);
  if (out.printsNotes) out.note(`See its state: ${cliCommand('sinks list')}`);
}

async function update(
  { api, out }: Session,
  { name, url, target, secret: asks }: UpdateOptions,
  sink?: string,
) {
  const change = {
    ...(name !== undefined && { name }),
    ...(url !== undefined && { url }),
    ...(target !== undefined && { target }),
    ...(asks === false && { secret: null }),
  };
  if (asks !== true && Object.keys(change).length === 0)
    throw new CliError('nothing to change: give --name, --url, --target, --secret or --no-secret');
  const secret = asks === true ? { secret: (await readSecret(`New secret of ${sink!}`)).trim() } : {};
  const view = await api.patch<SinkView>(path('sinks', sink!), { ...change, ...secret });
  out.result(view, () => `Updated sink ${view.name} (${view.url}).`);
  if (out.printsNotes) out.note(`See its state: ${cliCommand('sinks list')}`);
}

const STYLES: Record<SinkView['state'], Style | undefined> = {
  current: 'green',
  sending: undefined,
  failing: 'red',
  paused: 'yellow',
};

const COLUMNS: readonly Column<SinkView>[] = [
  { head: 'NAME', cell: ({ name }) => name },
  { head: 'KIND', cell: ({ kind }) => kind, drop: 2 },
  { head: 'STATE', cell: ({ state }) => state, style: ({ state }) => STYLES[state] },
  { head: 'LAG', cell: ({ lag_seconds: lag }) => `${Math.round(lag)} s`, align: 'right' },
  { head: 'ROWS', cell: ({ rows_sent: rows }) => rows, align: 'right', drop: 3 },
  { head: 'SENT', cell: ({ sent_at: at }) => minuteTime(at), drop: 4 },
  { head: 'URL', cell: ({ url }) => url, min: 12, drop: 1 },
  {
    head: 'LAST ERROR',
    cell: ({ last_error: error, last_error_at: at }) => error && `${minuteTime(at)} ${error}`,
    min: 12,
  },
];
