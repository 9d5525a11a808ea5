import { setImmediate as turn } from 'node:timers/promises';
import { uuidV7 } from '../../src/platform/uuid-v7.js';
import type { Settings } from '../../src/config/settings.js';
import { EndUsers } from '../../src/request-log/end-users.js';
import { FinishedCalls } from '../../src/request-log/finished-calls.js';
import { RequestLogService } from '../../src/request-log/request-log.service.js';
import { createDatabase } from '../support/database.js';
import { LogHarness } from './log-harness.js';
import { KEY, TEAM } from './rows.js';

/*
 * A shutdown waits for calls only so long: one that asks a frozen Postgres to release its Idempotency-Key, or waits for
 * the sync of a disk that hangs, ends when the log has closed.
 */

it('a call that ends after the shutdown gave it up changes nothing', async () => {
  const database = await createDatabase();
  const harness = await LogHarness.start(database.url);
  const log = new RequestLogService(
    harness.journal,
    harness.writer,
    new FinishedCalls(),
    new EndUsers({ requestLogUsers: 'plain' } as Settings),
  );
  const call = log.open({
    id: uuidV7(),
    keyId: KEY,
    teamId: TEAM,
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
    arrivedAt: 0,
    attribution: null,
    attributesBody: false,
    traceparent: null,
    tracestate: null,
  });
  expect(await new Promise((begun) => log.begin(call, begun))).toBeNull();
  await log.onApplicationShutdown();
  await new Promise<void>((ended) => log.endThen(call, 'completed', ended));
  log.close(call);
  await turn();
  expect([log.underWay, call.outcome]).toEqual([0, 'interrupted']);
  expect(harness.writer.counts.enqueued).toBe(1);
  await harness.remove();
  await database.drop();
});
