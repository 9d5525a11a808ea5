import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { uuidV7 } from '../../src/platform/uuid-v7.js';
import type { Settings } from '../../src/config/settings.js';
import { EndUsers } from '../../src/request-log/end-users.js';
import { FinishedCalls } from '../../src/request-log/finished-calls.js';
import { RequestLogService } from '../../src/request-log/request-log.service.js';
import type { CallRecord } from '../../src/request-log/call-record.js';
import type { JournalRecord } from '../../src/request-log/journal/record-codec.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { LogHarness } from './log-harness.js';
import { KEY, TEAM } from './rows.js';

let database: TestDatabase;
let harness: LogHarness;
let log: RequestLogService;
beforeEach(async () => {
  database = await createDatabase();
  harness = await LogHarness.start(database.url);
  log = new RequestLogService(
    harness.journal,
    harness.writer,
    new FinishedCalls(),
    new EndUsers({ requestLogUsers: 'plain' } as Settings),
  );
});
afterEach(async () => {
  await harness.stop();
  await harness.remove();
  await database.drop();
});

function openCall(): CallRecord {
  return log.open({
    id: uuidV7(),
    keyId: KEY,
    teamId: TEAM,
    subject: null,
    key: 'the key',
    provider: 'default',
    method: 'POST',
    path: '/v1/responses',
    clientIp: null,
    userAgent: null,
    idempotencyKey: null,
    sdkRetryCount: null,
    endpoint: '/v1/responses',
    upstream: 'http://provider.test',
    basePath: '',
    arrivedAt: 0,
    attribution: null,
    attributesBody: false,
    traceparent: null,
    tracestate: null,
  });
}

/** A call whose start is journalled. */
async function begunCall(): Promise<CallRecord> {
  const call = openCall();
  expect(await new Promise((begun) => log.begin(call, begun))).toBeNull();
  return call;
}

/*
 * A shutdown waits for calls only so long: one that asks a frozen Postgres to release its Idempotency-Key, or waits for
 * the sync of a disk that hangs, ends when the log has closed.
 */

never('a call that ends after the shutdown gave it up changes nothing', async () => {
  const call = await begunCall();
  await log.onApplicationShutdown();
  await new Promise<void>((ended) => log.endThen(call, 'completed', ended));
  log.close(call);
  await turn();
  expect([log.underWay, call.outcome]).toEqual([0, 'interrupted']);
  expect(harness.writer.counts.enqueued).toBe(1);
});

never(
  'a call whose client leaves just before the last write has one end in the journal, and a truthful row',
  async () => {
    const call = await begunCall();
    // With few calls in flight, its end would be written at once.
    for (let i = 0; i < 4; i++) openCall();
    const ended = new Promise<void>((resolve) => log.endThen(call, 'completed', resolve));
    log.end(call, 'client_aborted');
    log.close(call);
    await ended;
    await eventually(() => harness.writer.counts.persisted === 1);
    const { runDirectory } = harness.journal;
    const [file] = await readdir(runDirectory);
    const lines = (await readFile(join(runDirectory, file!), 'utf8')).trim().split('\n');
    const records = lines.map((line) => JSON.parse(line.slice(line.indexOf('{'))) as JournalRecord);
    expect(records.map(({ t, outcome }) => [t, outcome])).toEqual([
      ['B', undefined],
      ['E', 'client_aborted'],
      ['U', 'client_aborted'],
    ]);
    expect(await database.query('SELECT id, outcome FROM request_log')).toEqual([
      { id: call.origin.id, outcome: 'client_aborted' },
    ]);
    expect(harness.journal.oldestMs).toBe(0);
  },
);
