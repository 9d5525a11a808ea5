import { randomBytes } from 'node:crypto';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { type OwnedKey, spend, storedEvents } from './alerts.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());
beforeEach(() => gateway.database.query('DELETE FROM webhook'));
beforeEach(() => gateway.database.query('DELETE FROM webhook_event'));

const NOBODY = 'http://127.0.0.1:9/nobody';

async function subscribe(...events: string[]): Promise<void> {
  await gateway.admin('POST', '/webhooks', { url: NOBODY, events });
}

const createKey = (members: object): Promise<OwnedKey> =>
  gateway.admin('POST', '/keys', { team: 'default', name: randomBytes(6).toString('hex'), ...members });

const events = () => storedEvents(gateway.database);
const thresholds = async () => (await events()).map(({ type, data }) => [type, data.threshold]);

it('stores a threshold once for each period, with the row that crosses it, and exhaustion once', async () => {
  await subscribe('budget.threshold', 'budget.exhausted');
  const key = await createKey({ budgets: [{ usd: '10', period: 'month', alert_at: [50, 80, 100] }] });
  await spend(gateway.database, key, '4.99');
  expect(await thresholds()).toEqual([]);
  await spend(gateway.database, key, '0.01');
  expect(await thresholds()).toEqual([['budget.threshold', 50]]);
  await spend(gateway.database, key, '0.5', '0.5');
  expect(await thresholds()).toHaveLength(1);
  // Only the highest of several that one batch crosses.
  await spend(gateway.database, key, '4', '1');
  expect(await thresholds()).toEqual([
    ['budget.threshold', 50],
    ['budget.threshold', 100],
    ['budget.exhausted', 100],
  ]);
  await spend(gateway.database, key, '4', '1');
  expect(await thresholds()).toHaveLength(3);
  expect((await events())[1]).toMatchObject({
    data: {
      scope: 'key',
      team: 'default',
      key: key.name,
      key_id: key.id,
      subject: null,
      resource: 'usd',
      period: 'month',
      mode: 'block',
      amount: '10000000000',
      used: '11000000000',
    },
  });
  // The budget resets with the next period.
  await gateway.database.query(`UPDATE limit_meter SET window_start = window_start - interval '1 month'`);
  await spend(gateway.database, key, '8');
  expect((await thresholds()).slice(3)).toEqual([['budget.threshold', 80]]);
});

it('stores nothing if the transaction of the charge is rolled back, and never makes a charge fail', async () => {
  await subscribe('budget.threshold');
  const key = await createKey({ budgets: [{ usd: '10', period: 'total', alert_at: [50] }] });
  await gateway.database.query(`
    CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
    CREATE TRIGGER reject BEFORE INSERT ON webhook_event FOR EACH ROW EXECUTE FUNCTION reject()`);
  await spend(gateway.database, key, '6');
  await gateway.database.query('DROP TRIGGER reject ON webhook_event');
  expect(await events()).toEqual([]);
  const [limit] = (await gateway.admin<{ data: { used: string }[] }>('GET', `/limits?key=${key.id}`)).data;
  expect(limit).toMatchObject({ used: '6.00' });
  // The meter was not marked, so the next charge announces it.
  await spend(gateway.database, key, '0.1');
  expect(await thresholds()).toEqual([['budget.threshold', 50]]);
});

it('announces exhaustion with the first rejected call, although a little is left', async () => {
  await subscribe('budget.exhausted');
  const key = await createKey({ budgets: [{ tokens: 100, period: 'total' }] });
  await spend(gateway.database, key, '0');
  const [rule] = await gateway.database.query<{ id: string }>(
    'SELECT id FROM limit_rule WHERE scope_id = $1',
    [key.id],
  );
  await gateway.database.query(
    `INSERT INTO limit_meter (rule_id, subject, window_start, spent) VALUES ($1, '', to_timestamp(0), 95)`,
    [rule!.id],
  );
  expect(await events()).toEqual([]);
  for (let i = 0; i < 2; i++)
    await gateway.database.query('UPDATE limit_meter SET refused = refused + 1 WHERE rule_id = $1', [
      rule!.id,
    ]);
  expect(await thresholds()).toEqual([['budget.exhausted', null]]);
});

it('announces the thresholds of a raised or reset budget again that are no longer reached', async () => {
  await subscribe('budget.threshold', 'budget.exhausted');
  const budget = (usd: string) => ({ budgets: [{ usd, period: 'month', alert_at: [50, 90] }] });
  const key = await createKey(budget('10'));
  await spend(gateway.database, key, '10');
  expect(await thresholds()).toEqual([
    ['budget.threshold', 90],
    ['budget.exhausted', 90],
  ]);
  await gateway.admin('PATCH', `/keys/${key.id}`, budget('16'));
  // 62 % of the new amount: 50 % was announced.
  await spend(gateway.database, key, '0.1');
  expect(await thresholds()).toHaveLength(2);
  await spend(gateway.database, key, '5');
  expect((await thresholds()).slice(2)).toEqual([['budget.threshold', 90]]);
  const [limit] = (await gateway.admin<{ data: { id: string }[] }>('GET', `/limits?key=${key.id}`)).data;
  await gateway.admin('POST', `/limits/${limit!.id}/reset`, { reason: 'again' });
  await spend(gateway.database, key, '1');
  expect(await thresholds()).toHaveLength(3);
  await spend(gateway.database, key, '8');
  expect((await thresholds()).slice(3)).toEqual([['budget.threshold', 50]]);
});

it('stores events of 50 end users of a budget a day, and those of other budgets', async () => {
  await subscribe('budget.exhausted');
  const each_end_user = { budgets: [{ usd: '1', period: 'day' }] };
  const key = await createKey({ each_end_user, budgets: [{ usd: '100', period: 'day' }] });
  const exhaust = (id: string) =>
    gateway.database.query(
      `INSERT INTO limit_meter (rule_id, subject, window_start, spent)
       SELECT r.id, n::text, date_trunc('day', now(), 'UTC'), 1000000000 FROM limit_rule r, generate_series(1, 60) n
       WHERE scope_id = $1 AND scope = 'key_end_user'`,
      [id],
    );
  await exhaust(key.id);
  expect(await events()).toHaveLength(50);
  const other = await createKey({ each_end_user });
  await exhaust(other.id);
  await spend(gateway.database, key, '100');
  expect(await events()).toHaveLength(101);
});

it('stores an event for each end user, and none without a webhook for it', async () => {
  await subscribe('key.expiring');
  const key = await createKey({ budgets: [{ usd: '1', period: 'day', alert_at: [50] }] });
  await spend(gateway.database, key, '2');
  expect(await events()).toEqual([]);
});
