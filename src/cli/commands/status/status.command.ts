import { Command } from 'commander';
import type { Page } from '../../../database/page.js';
import type { SinkView } from '../../../sinks/sinks.schema.js';
import type { SystemView } from '../../../system/system.schema.js';
import { type Api, ApiError, type Readiness } from '../../api.js';
import type { Output, Style } from '../../output.js';
import { action, type Session } from '../../session.js';
import { type Cell, count } from '../../table.js';
import { exactTime } from '../../times.js';

/** `postern status` */
export function statusCommand(): Command {
  return new Command('status')
    .description('show whether a running gateway is healthy, its version, processes, journal and sinks')
    .option('--json', 'print the state as JSON, with the sinks')
    .addHelpText(
      'after',
      `
Exit code 0 if the gateway is "ok", 1 if it is "degraded" or "unavailable", or if none runs.
Behind a load balancer, version, journal and rows are those of the replica that responds.

Examples:
  postern status
  postern status --json --url https://gateway.example.com`,
    )
    .action(action(status));
}

async function status({ running: api, out }: Session): Promise<void> {
  const states = Promise.all([api.get<SystemView>('system'), api.get<Page<SinkView>>('sinks')]);
  const [system, sinks] = await states.catch(async (error: unknown) => {
    // The gateway itself knows more, for example that it serves calls all the same.
    if (error instanceof ApiError && error.code === 'database_unavailable') await printReadiness(api, out);
    throw error;
  });
  out.result({ ...system, sinks: sinks.data }, () => linesOf(out, system, sinks.data));
  if (system.status !== 'ok') process.exitCode = 1;
}

async function printReadiness(api: Api, out: Output): Promise<void> {
  const readiness = await api.readiness();
  if (readiness !== null) out.result(readiness, () => out.fields(health(readiness)));
}

type Field = readonly [name: string, value: Cell, style?: Style];

function health({ status, reasons }: Readiness): Field[] {
  return [['status', status, STATUS_STYLES[status]], ...reasons.map((reason) => ['reason', reason] as const)];
}

const STATUS_STYLES: Record<SystemView['status'], Style> = {
  ok: 'green',
  degraded: 'yellow',
  unavailable: 'red',
};

function linesOf(out: Output, system: SystemView, sinks: readonly SinkView[]): string {
  const { version, commit, journal, log_writer: writer, database, processes } = system;
  const fields: Field[] = [
    ...health(system),
    ['version', commit === null ? version : `${version} (${commit.slice(0, 12)})`],
    ['started', exactTime(system.started_at)],
    ['processes', count(processes.length)],
    ['postgres', `${database.version}, ${count(database.bytes)} bytes`],
    ['journal', journalState(journal), journal.accepting ? undefined : 'red'],
    [
      'rows to write',
      `${count(writer.waiting)} in memory, ${count(writer.spilled)} in the journal only, ` +
        `oldest file ${seconds(journal.oldest_seconds)}`,
    ],
    ['rows rejected', count(writer.rejected), writer.rejected > 0 ? 'red' : undefined],
    ['usage up to', system.usage_as_of && exactTime(system.usage_as_of)],
    ...sinks.map(
      ({ name, state, lag_seconds: lag, last_error: error }) =>
        [
          `sink ${name}`,
          state === 'failing' ? `failing: ${error}` : `${state}, ${seconds(lag)} behind`,
          state === 'failing' ? 'red' : undefined,
        ] as const,
    ),
  ];
  return out.fields(fields);
}

function journalState({ accepting, degraded, bytes }: SystemView['journal']): string {
  const state = !accepting ? 'accepts no calls' : degraded === null ? 'ok' : `degraded (${degraded})`;
  return `${state}, ${count(bytes)} bytes`;
}

function seconds(number: number): string {
  return `${count(Math.round(number))} s`;
}
