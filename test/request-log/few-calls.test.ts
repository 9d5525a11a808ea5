import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { Settings } from '../../src/config/settings.js';
import { ShutdownService } from '../../src/observability/shutdown.service.js';
import { uuidV7 } from '../../src/platform/uuid-v7.js';
import type { CallRecord } from '../../src/request-log/call-record.js';
import { EndUsers } from '../../src/request-log/end-users.js';
import { FinishedCalls } from '../../src/request-log/finished-calls.js';
import { RequestLogService } from '../../src/request-log/request-log.service.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { LogHarness } from './log-harness.js';
import { KEY, TEAM } from './rows.js';

let database: TestDatabase;
let harness: LogHarness;
let log: RequestLogService;
beforeAll(async () => {
  database = await createDatabase();
});
beforeEach(async () => {
  harness = await LogHarness.start(database.url);
  log = new RequestLogService(
    harness.journal,
    harness.writer,
    new FinishedCalls(),
    new EndUsers({ requestLogUsers: 'plain' } as Settings),
  );
});
afterEach(async () => {
  jest.restoreAllMocks();
  await log.onApplicationShutdown();
  await harness.stop();
  await harness.remove();
});
afterAll(() => database.drop());

function openCall(): CallRecord {
  return log.open({
    ...{ id: uuidV7(), keyId: KEY, teamId: TEAM, subject: null, key: 'the key', provider: 'default' },
    ...{ method: 'POST', path: '/v1/responses', clientIp: null, userAgent: null, idempotencyKey: null },
    ...{ sdkRetryCount: null, endpoint: '/v1/responses', upstream: 'http://provider.test', basePath: '' },
    ...{ arrivedAt: 0, attribution: null, attributesBody: false, traceparent: null, tracestate: null },
  });
}

/** The types of the records in the journal, in their order. */
function journalled(): string[] {
  const { runDirectory } = harness.journal;
  const [file] = readdirSync(runDirectory);
  return readFileSync(join(runDirectory, file!), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line.slice(line.indexOf('{'))) as { t: string }).t);
}

it('journals the start of a call at once if there are few, and otherwise all of one tick in one write', async () => {
  let begun = 0;
  const onBegun = (error: unknown) => void (error === null && begun++);
  log.begin(openCall(), onBegun, true);
  expect([begun, journalled()]).toEqual([1, ['B']]);
  const calls = Array.from({ length: 20 }, openCall);
  const writes = jest.spyOn(harness.journal, 'appendBatch');
  for (const call of calls) log.begin(call, onBegun, true);
  expect([begun, writes.mock.calls.length]).toEqual([1, 0]);
  await turn();
  expect([begun, writes.mock.calls.length, journalled().length]).toEqual([21, 1, 21]);
});

never(
  'does not begin a call of which not all has been read before the end of the tick: it may break meanwhile',
  async () => {
    let begun = 0;
    log.begin(openCall(), () => void begun++);
    expect([begun, journalled()]).toEqual([0, []]);
    await turn();
    expect([begun, journalled()]).toEqual([1, ['B']]);
  },
);

it('journals the end of a call at once if there are few, and otherwise all of one tick in one write', async () => {
  let ended = 0;
  const calls = Array.from({ length: 20 }, openCall);
  for (const call of calls) log.begin(call, () => {});
  await turn();
  const writes = jest.spyOn(harness.journal, 'appendBatch');
  for (const call of calls.splice(0, 16)) {
    log.endThen(call, 'completed', () => {
      ended++;
      log.close(call);
    });
  }
  expect([ended, writes.mock.calls.length]).toEqual([0, 0]);
  await turn();
  expect([ended, writes.mock.calls.length]).toEqual([16, 1]);
  log.endThen(calls[0]!, 'completed', () => void ended++);
  expect([ended, writes.mock.calls.length]).toEqual([17, 2]);
});

it('reads the responses of several calls together, soon after their ends', async () => {
  const calls = [openCall(), openCall(), openCall()];
  const [first, second, third] = calls as [CallRecord, CallRecord, CallRecord];
  for (const call of calls) log.begin(call, () => {}, true);
  for (const call of [first, second]) {
    log.end(call, 'completed');
    log.close(call);
  }
  expect(journalled()).toEqual(['B', 'B', 'B', 'E', 'E']);
  const writes = jest.spyOn(harness.journal, 'appendBatch');
  await eventually(() => harness.writer.counts.enqueued === 2);
  expect([journalled(), writes.mock.calls.length]).toEqual([['B', 'B', 'B', 'E', 'E', 'U', 'U'], 1]);
  log.end(third, 'completed');
  log.close(third);
  await eventually(() => harness.writer.counts.enqueued === 3);
  expect(journalled().slice(7)).toEqual(['E', 'U']);
});

it('does not say of a call whose token counts are awaited that the shutdown has cut it off', async () => {
  const warned = jest.spyOn(Logger.prototype, 'warn');
  const host = { httpAdapter: { openRequests: 0, servers: [] } };
  const settings = { shutdownDelayMs: 0, shutdownGraceMs: 0 } as Settings;
  const others = [{ close: () => Promise.resolve() }, { closeQuiet: () => {} }] as const;
  const shutdown = new ShutdownService(host as never, log, others[0] as never, others[1] as never, settings);
  const call = openCall();
  log.begin(call, () => {}, true);
  log.end(call, 'completed');
  log.close(call);
  await shutdown.drain({ atOnce: true });
  expect([warned.mock.calls, journalled()]).toEqual([[], ['B', 'E', 'U']]);
});

it('notifies a policy of the end of a call in the same tick: a next call may need what it gets back', async () => {
  const call = openCall();
  let settled = false;
  call.addTicket({ settle: () => void (settled = true), abandon: () => {} });
  log.begin(call, () => {}, true);
  log.end(call, 'completed');
  log.close(call);
  await turn();
  expect(settled).toBe(true);
});
