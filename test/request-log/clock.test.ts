import { startOf } from '../../src/request-log/column-domains.js';
import { KeyUseService } from '../../src/auth/key-use.service.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { Wire } from '../support/wire.js';

const DAY_MS = 86_400_000;
const LINE = 'POST /v1/chat/completions';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());
afterEach(() => jest.restoreAllMocks());

const call = async () => (await wire.call(LINE, [], '{}')).header('x-gateway-request-id')!;

never('a clock that was ahead for a moment concerns only the calls of that moment', async () => {
  const { gateway } = wire;
  const realNow = Date.now;
  const before = Date.now();
  jest.spyOn(Date, 'now').mockImplementation(() => realNow() + 10 * DAY_MS);
  const ahead = await call();
  await gateway.gateway.app.get(KeyUseService).write();
  jest.restoreAllMocks();
  expect(startOf(ahead)).toBeGreaterThan(before + 9 * DAY_MS);

  const right = await call();
  expect(startOf(right)).toBeGreaterThanOrEqual(before);
  expect(startOf(right)).toBeLessThanOrEqual(Date.now());
  await gateway.row(right);
  expect(await gateway.rowCount()).toBe(1);

  const health = await eventually(async () => {
    const response = await fetch(`${gateway.url}/health/ready`);
    const { status, reasons } = (await response.json()) as { status: string; reasons: string[] };
    return reasons.some((reason) => reason.startsWith('rows wait')) && [response.status, status, reasons];
  });
  const reason = 'rows wait because they start more than 2 days ahead of the database; check the clocks';
  expect(health).toEqual([200, 'degraded', expect.arrayContaining([reason])]);
  const used = await gateway.database.query<{ is_past: boolean }>(
    'SELECT last_used_at <= now() AS is_past FROM gateway_key_secret WHERE last_used_at IS NOT NULL',
  );
  expect(used).toEqual([{ is_past: true }]);
});
