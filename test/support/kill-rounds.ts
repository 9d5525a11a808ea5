import { randomInt } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { logFiles, runDirectories } from '../../src/request-log/journal/run-directories.js';
import { AccountedLoad, type LoggedCall } from './accounted-load.js';
import { createDatabase, type TestDatabase } from './database.js';
import { eventually, timePasses } from './eventually.js';
import { startTestGateway } from './gateway.js';
import { Workplace } from './workplace.js';

/** Where fault-preload.mjs can kill a gateway, or make its system calls fail. */
export interface Point {
  at: string;
  do: string;
  nth?: number;
  times?: number;
  trace?: boolean;
}

/** Environment that loads the shim into a gateway of a test. */
export function withFault(point: Point): Record<string, string> {
  return {
    POSTERN_TEST_PRELOAD: resolve(__dirname, 'fault-preload.mjs'),
    POSTERN_TEST_FAULT: JSON.stringify(point),
  };
}

/** Every step of a call and of its row at which the process can die; `random`: at any other. */
export const NAMED_POINTS: Point[] = [
  { at: 'append:B', do: 'kill-before', nth: 150 },
  { at: 'append:B', do: 'kill-after', nth: 150 },
  { at: 'head', do: 'kill-before', nth: 150 },
  { at: 'head', do: 'kill-after', nth: 150 },
  { at: 'append:E', do: 'kill-before', nth: 150 },
  { at: 'append:E', do: 'kill-after', nth: 150 },
  { at: 'append:U', do: 'kill-before', nth: 150 },
  { at: 'append:U', do: 'kill-after', nth: 150 },
  { at: 'insert', do: 'kill-before', nth: 4 },
  { at: 'insert', do: 'kill-after', nth: 4 },
  { at: 'rotate', do: 'kill-before' },
  { at: 'rotate', do: 'kill-after' },
  { at: 'unlink', do: 'kill-before' },
  { at: 'unlink', do: 'kill-after' },
];

const CLIENTS = 24;
/** Makes a call's beginning some 3 KB of journal, so that 8 MiB are soon full and the file is rotated. */
const PADDING = `-${'"'.repeat(900)}`;

/**
 * One gateway after the other on the same folder and database, each killed under load. After each death the next one
 * has to bring what the dead one left, and the rows are compared with the provider's and the clients' own books.
 *
 * @returns figures, in words
 */
export async function killRounds(
  points: readonly (Point | 'random')[],
  onRound?: (line: string) => void,
): Promise<string> {
  const database = await createDatabase();
  const workplace = await Workplace.make();
  const load = await AccountedLoad.start();
  const settings = { DATABASE_URL: database.url, PROVIDER_URL: load.provider.url, SHUTDOWN_GRACE_MS: '1000' };
  const outcomes: Record<string, number> = {};
  try {
    const first = await startTestGateway(settings, database);
    const { key } = first;
    await first.stop();
    for (const point of points) {
      const fault = point === 'random' ? {} : withFault(point);
      const gateway = workplace.gateway({ ...settings, ...fault });
      const url = await gateway.ready();
      await drained(workplace);
      expect(load.judge(await rowsOf(database))).toEqual([]);
      const slow = point !== 'random' && ['rotate', 'unlink'].includes(point.at);
      load.run(url, key, CLIENTS, slow ? PADDING : '');
      if (point === 'random') {
        const enough = load.answered.size + randomInt(20, 400);
        await eventually(() => load.answered.size >= enough);
        await timePasses(randomInt(0, 120), 'the kill comes at different moments');
        await gateway.process.kill();
      }
      expect((await gateway.process.ended).signal).toBe('SIGKILL');
      await load.stop({ gone: true });
      onRound?.(`killed at ${JSON.stringify(point)}: ${load.seen.size} requests so far`);
    }
    const last = workplace.gateway(settings);
    await last.ready();
    await drained(workplace);
    const rows = await rowsOf(database);
    expect(load.judge(rows)).toEqual([]);
    expect(await last.stop()).toEqual({ code: 0, signal: null });
    expect(await waitingJournals(workplace.dataDir)).toEqual([]);
    for (const { outcome } of rows) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    return (
      `${points.length} kills; ${load.seen.size} requests at the provider, ${load.answered.size} answered whole; ` +
      `rows: ${JSON.stringify(outcomes)}; lost 0, doubled 0, untruthful 0`
    );
  } finally {
    await load.close();
    await workplace.remove();
    await database.drop();
  }
}

/** Waits until the directories of killed processes are gone: what they held is in Postgres. */
export async function drained({ dataDir }: Workplace): Promise<void> {
  await eventually(async () => {
    expect(await readdir(join(dataDir, 'journal'))).not.toContain('rejected');
    return (await waitingJournals(dataDir)).length === 1;
  });
}

/** Directories of process runs with files whose rows may not be in Postgres. Finished ones are kept for a while. */
export async function waitingJournals(dataDir: string): Promise<string[]> {
  const runs = await runDirectories(join(dataDir, 'journal'));
  const files = await Promise.all(runs.map((run) => logFiles(run).catch(() => [])));
  return runs.filter((_, i) => files[i]!.length > 0);
}

export function rowsOf(database: TestDatabase): Promise<LoggedCall[]> {
  return database.query<LoggedCall>('SELECT idempotency_key, outcome, status FROM request_log');
}
