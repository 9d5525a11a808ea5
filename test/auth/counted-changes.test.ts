import { DataSource, type EntityManager } from 'typeorm';
import { HeldLocks } from '../identity/held-locks.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { setPatience } from '../support/patience.js';

setPatience(1, 'a look-up');

let postern: TestGateway;
let locks: HeldLocks;
beforeAll(async () => {
  jest.spyOn(console, 'warn').mockImplementation(() => {});
  postern = await startTestGateway();
  locks = await HeldLocks.in(postern.database);
});
afterAll(async () => {
  await locks.end();
  await postern.stop();
});

let number = 0;
async function newKey(): Promise<string> {
  const key = { team: 'default', name: `k${++number}` };
  return (await postern.admin<{ id: string }>('POST', '/keys', key)).id;
}

async function counted(): Promise<bigint> {
  const [row] = await postern.database.query<{ value: string }>(
    `SELECT value FROM change_counter WHERE name = 'keys'`,
  );
  return BigInt(row!.value);
}

const change = (id: string) =>
  locks.other.query('UPDATE gateway_key SET disabled = NOT disabled WHERE id = $1', [id]);

describe('a transaction that changes keys', () => {
  const notified: string[] = [];
  beforeAll(async () => {
    locks.other.on('notification', ({ payload }) => notified.push(payload!));
    await locks.other.query('LISTEN postern_keys');
  });
  /** Notifications of earlier changes may arrive late. */
  const notifiedAfter = (count: bigint) =>
    notified.filter((payload) => BigInt(payload.split(' ')[0]!) > count);

  it('is counted once, and each of them is notified', async () => {
    const [one, other] = [await newKey(), await newKey()];
    const before = await counted();
    await locks.other.query('BEGIN');
    for (const id of [one, other]) await change(id);
    await locks.other.query('COMMIT');
    expect(await counted()).toBe(before + 1n);
    await eventually(() => notifiedAfter(before).length === 2);
    expect(notifiedAfter(before)).toEqual([`${before + 1n} ${one}`, `${before + 1n} ${other}`]);
  });

  never('is counted after a part of it that is rolled back', async () => {
    const [one, other] = [await newKey(), await newKey()];
    const before = await counted();
    await locks.other.query('BEGIN; SET CONSTRAINTS ALL IMMEDIATE; SAVEPOINT part');
    await change(one);
    await locks.other.query('ROLLBACK TO SAVEPOINT part');
    await change(other);
    await locks.other.query('COMMIT');
    expect(await counted()).toBe(before + 1n);
    await eventually(() => notifiedAfter(before).length === 1);
    expect(notifiedAfter(before)).toEqual([`${before + 1n} ${other}`]);
  });

  it('is counted after a transaction that is nested in it, at its own end', async () => {
    const [one, other] = [await newKey(), await newKey()];
    const before = await counted();
    const toggle = (manager: EntityManager, id: string) =>
      manager.query('UPDATE gateway_key SET disabled = NOT disabled WHERE id = $1', [id]);
    await postern.gateway.app.get(DataSource).transaction(async (manager) => {
      await manager.transaction((nested) => toggle(nested, one));
      // Whoever changes keys meanwhile does not wait for its end.
      await locks.other.query(`SELECT FROM change_counter WHERE name = 'keys' FOR UPDATE NOWAIT`);
      await toggle(manager, other);
    });
    expect(await counted()).toBe(before + 1n);
    await eventually(() => notifiedAfter(before).length === 2);
    expect(notifiedAfter(before)).toEqual([`${before + 1n} ${one}`, `${before + 1n} ${other}`]);
  });
});

never('a change that cannot be counted in time is not made', async () => {
  const id = await newKey();
  await locks.other.query('BEGIN');
  await locks.other.query(`SELECT FROM change_counter WHERE name = 'keys' FOR UPDATE`);
  await expect(postern.admin('PATCH', `/keys/${id}`, { disabled: true })).rejects.toThrow(/503/);
  await locks.other.query('COMMIT');
  await eventually(async () => (await locks.waiting()) === 0);
  expect(await postern.admin('GET', `/keys/${id}`)).toMatchObject({ disabled: false });
  await postern.admin('PATCH', `/keys/${id}`, { disabled: true });
});
