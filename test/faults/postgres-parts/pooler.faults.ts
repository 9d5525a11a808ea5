import { createDatabase, type TestDatabase } from '../../support/database.js';
import { eventually, soon, timePasses } from '../../support/eventually.js';
import { PGBOUNCER, type Pooler, startPooler } from '../../support/pooler.js';
import type { RawProvider } from '../../support/raw-provider.js';
import { expectRows, judge, LoadedGateway, startProvider } from './loaded-gateway.js';

/*
 * Two replicas behind PgBouncer, which is killed, restarted and frozen under load. PGBOUNCER names another than the
 * installed one.
 */

const HOLD_MS = 6_500;
const ONLY_PLAIN = { plain: 3, budget: 0, rate: 0, concurrency: 0, replay: 0, cached: 0 };

if (PGBOUNCER === null) {
  it('pgbouncer is not installed: nothing was tried behind a pooler', () => {
    process.stdout.write('NOT TRIED: pgbouncer is not installed\n');
  });
}

describe.each(PGBOUNCER === null ? [] : (['transaction', 'session'] as const))('in %s mode', (mode) => {
  let database: TestDatabase;
  let beside: TestDatabase;
  let pooler: Pooler;
  let provider: RawProvider;
  let gateway: LoadedGateway;
  let other: LoadedGateway;
  let control: LoadedGateway;

  beforeAll(async () => {
    database = await createDatabase();
    beside = await createDatabase();
    const name = new URL(database.url).pathname.slice(1);
    // The test's server has it off.
    await database.query(`ALTER DATABASE "${name}" SET synchronous_commit = on`);
    pooler = await startPooler(database.url, mode);
    provider = await startProvider();
    // In session mode, everything goes through the pooler.
    const settings = {
      DATABASE_URL: pooler.url,
      ...(mode === 'transaction' && { DATABASE_DIRECT_URL: database.url }),
    };
    gateway = await LoadedGateway.start(provider, settings);
    other = await LoadedGateway.start(provider, settings, gateway.keys);
    control = await LoadedGateway.start(provider, { DATABASE_URL: beside.url });
  }, 240_000);
  afterAll(async () => {
    for (const each of [gateway, other, control]) await each.stop();
    await provider.stop();
    await pooler.stop();
    await database.drop();
    await beside.drop();
  });

  const TROUBLES: Record<string, () => Promise<() => Promise<unknown>>> = {
    'nothing wrong': () => Promise.resolve(() => Promise.resolve()),
    'the pooler killed, and started again later': async () => {
      await pooler.kill();
      return () => pooler.start();
    },
    'the pooler restarted three times': async () => {
      for (let i = 0; i < 3; i++) {
        await pooler.kill();
        await pooler.start();
        await timePasses(500, 'calls through the new one');
      }
      return () => Promise.resolve();
    },
    'the pooler frozen': () => {
      pooler.freeze(true);
      return Promise.resolve(() => Promise.resolve(pooler.freeze(false)));
    },
  };

  it.each(Object.keys(TROUBLES))(
    'rows, budgets, the cache and keys are as without a pooler, with %s',
    async (name) => {
      const { id, key } = await gateway.admin<{ id: string; key: string }>('POST', '/keys', {
        team: 'default',
        name,
      });
      for (const each of [gateway, other]) expect((await each.call('plain', key)).status).toBe(200);
      for (const each of [gateway, other]) each.run();
      control.run(ONLY_PLAIN);
      await timePasses(500, 'calls before the trouble');
      const restore = await TROUBLES[name]!();
      let revoked: boolean;
      try {
        // The admin API has connections of its own, in transaction mode without the pooler.
        revoked = await gateway.admin('POST', `/keys/${id}/revoke`).then(
          () => true,
          () => false,
        );
        if (mode === 'transaction') expect(revoked).toBe(true);
        // The notification comes without the pooler. What the key is now cannot be looked up without it.
        if (revoked)
          await soon(async () => [401, 503].includes((await other.call('plain', key)).status), 300);
        for (const each of [gateway, other]) await each.during(HOLD_MS);
      } finally {
        await restore();
      }
      if (revoked) await eventually(async () => (await other.call('plain', key)).status === 401);
      const [calls, ofOther, usual] = await Promise.all([gateway.rest(), other.rest(), control.rest()]);
      const words = [judge(name, calls, usual), judge('the other replica', ofOther, usual)];
      const seconds = await expectRows(
        (sql, values) => database.query(sql, values),
        [...calls.ids, ...ofOther.ids],
      );
      for (const each of [gateway, other]) await each.healthy();
      expect(gateway.mostArrivals).toBe(1);
      await eventually(async () => (await other.call('replay')).status === 200);
      process.stdout.write(
        `${pooler.version}, ${mode} mode, ${words.join('\n  ')}; all rows ${seconds.toFixed(1)} s after\n`,
      );
    },
    240_000,
  );

  it('no statement of a gateway met one of another in its session', () => {
    for (const { log } of [gateway, other]) expect(log).not.toMatch(/prepared statement|42P05|26000/);
  });
});
