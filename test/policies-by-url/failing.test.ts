import type { Rule } from '../../src/policies-by-url/decision/rule.js';
import { PolicyHealth } from '../../src/policies-by-url/policy-health.service.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { Receiver, verified } from '../webhooks/receiver.js';

let postern: TestGateway;
let receiver: Receiver;
let secret: string;
beforeAll(async () => {
  postern = await startTestGateway();
  receiver = await new Receiver().listen();
  const webhook = { url: receiver.url, events: ['policy.failing'] };
  ({ secret } = await postern.admin<{ secret: string }>('POST', '/webhooks', webhook));
});
afterAll(async () => {
  await postern.stop();
  await receiver.close();
});

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const rule = { id: ID, name: 'dlp', onFailure: 'allow' } as Rule;
const START = 1_000_000;

const events = (policy: string) =>
  postern.database.query<{ data: object; once: string }>(
    `SELECT data, once FROM webhook_event WHERE type = 'policy.failing' AND data->>'policy' = $1`,
    [policy],
  );

it('is announced once it has failed for a minute, and at most once an hour', async () => {
  const health = postern.gateway.app.get(PolicyHealth, { strict: false });
  const failAt = async (ms: number) => {
    health.failed(rule, 'timeout', 300, START + ms);
    await health.announce();
  };
  await failAt(0);
  await failAt(59_999);
  expect(await events('dlp')).toEqual([]);
  await failAt(60_000);
  const data = { policy: 'dlp', policy_id: ID, on_failure: 'allow', reason: 'timeout' };
  expect(await events('dlp')).toMatchObject([{ data }]);
  await failAt(70_000);
  const all = await events('dlp');
  // Each of an hour of its own, if one begins right now.
  expect(new Set(all.map(({ once }) => once)).size).toBe(all.length);
  const [received] = await receiver.until(1);
  expect(verified(received!, secret)).toMatchObject({ type: 'policy.failing', data });
});

it('is not announced if it has decided meanwhile', async () => {
  const health = postern.gateway.app.get(PolicyHealth, { strict: false });
  await postern.database.query('DELETE FROM webhook_event');
  const other = { ...rule, id: '01890a5d-ac96-774b-bcce-b302099a8058', name: 'other' } as Rule;
  health.failed(other, 'timeout', 300);
  health.decided(other, true, 5);
  // Long after: another spell.
  health.failed(other, 'timeout', 300, performance.now() + 120_000);
  await health.announce();
  await eventually(() => health.counts.get('other')?.failures.get('timeout') === 2);
  expect(await events('other')).toEqual([]);
});
