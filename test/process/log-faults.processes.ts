import { AccountedLoad } from '../support/accounted-load.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { killRounds, NAMED_POINTS, rowsOf, withFault } from '../support/kill-rounds.js';
import { canMount, SmallDisk } from '../support/small-disk.js';
import { FULL } from '../support/scale.js';
import { Workplace } from '../support/workplace.js';

const DISK_FAULTS = [
  { at: 'append:E', do: 'EIO', nth: 50, times: 10_000 },
  { at: 'sync', do: 'EIO', nth: 3, times: 3 },
  { at: 'append:B', do: 'EIO', nth: 50 },
  { at: 'append:U', do: 'EIO', nth: 50, times: 10_000 },
  { at: 'append:E', do: 'short', nth: 50 },
  { at: 'unlink', do: 'EPERM', times: 2 },
];

/*
 * The request log of the build as it ships, among faults: short versions of test/faults/, which `npm run test:faults`
 * runs for minutes.
 */

it('loses no row, doubles none and tells no lie when it is killed', async () => {
  const some = NAMED_POINTS.filter((point) => point.do === 'kill-after' && /append:E|insert/.test(point.at));
  expect(some).toHaveLength(2);
  await killRounds(some);
});

describe('on a disk in trouble', () => {
  let database: TestDatabase;
  let workplace: Workplace;
  let load: AccountedLoad;
  beforeEach(async () => {
    database = await createDatabase();
    workplace = await Workplace.make();
    load = await AccountedLoad.start();
  });
  afterEach(async () => {
    await load.close();
    await workplace.remove();
    await database.drop();
  });

  async function start(env: Record<string, string>) {
    const gateway = workplace.gateway({
      DATABASE_URL: database.url,
      PROVIDER_URL: load.provider.url,
      ...env,
    });
    const key = await gateway.firstKey();
    return { gateway, key, url: await gateway.ready() };
  }
  const answered = (count: number) => eventually(() => load.answered.size >= count);
  async function expectTheBooksToAgree() {
    await eventually(async () => (await rowsOf(database)).length >= load.seen.size);
    expect(load.judge(await rowsOf(database))).toEqual([]);
  }

  (canMount ? it : it.skip)(
    'rejects new calls when it is full, ends those in flight, and recovers',
    async () => {
      const disk = await SmallDisk.mount(96);
      try {
        const { gateway, key, url } = await start({ DATA_DIR: disk.path });
        const goOn = deferred();
        load.pace = () => goOn.promise;
        load.streamsOnly = true;
        load.run(url, key, 8);
        await eventually(() => load.seen.size === 8);
        const streams = [...load.seen.keys()];
        disk.fill();
        // Until the last page of the current file is used up, lines still go there.
        const rejected = await eventually(async () => {
          const reply = await load.once(url, key);
          return reply.status === 503 && reply;
        });
        expect(rejected.header('x-gateway-error')).toBe('journal_unavailable');
        expect(Number(rejected.header('retry-after'))).toBeGreaterThan(0);
        // The next call of each client of the load is rejected; the one in flight ends whole.
        goOn.resolve();
        await load.stop();
        for (const call of streams) expect(load.answered).toContain(call);
        expect(new Set(load.rejected.values())).toEqual(new Set(['journal_unavailable']));
        disk.empty();
        load.rejected.clear();
        await eventually(async () => {
          load.run(url, key, 8);
          await eventually(() => load.answered.size + load.rejected.size >= 80);
          await load.stop();
          load.rejected.clear();
          return load.answered.size >= 80;
        });
        await expectTheBooksToAgree();
        expect(await gateway.stop()).toEqual({ code: 0, signal: null });
        expect(gateway.process.stderr).toMatch(
          /The journal is degraded: (ENOSPC|the disk of DATA_DIR is full)/,
        );
        expect(gateway.process.stdout).toContain('The journal can be written again');
      } finally {
        await workplace.remove();
        await disk.unmount();
      }
    },
  );

  it.each(FULL ? DISK_FAULTS : DISK_FAULTS.slice(0, 2))('has every row after $do at $at', async (point) => {
    const { gateway, key, url } = await start(withFault(point));
    load.run(url, key, 8);
    await answered(300);
    await load.stop();
    expect(load.rejected.size).toBe(0);
    await expectTheBooksToAgree();
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  });

  it('takes no call that it cannot journal, and forwards none of them', async () => {
    const { gateway, key, url } = await start(
      withFault({ at: 'append:B', do: 'EIO', nth: 50, times: 1_000_000 }),
    );
    load.run(url, key, 8);
    await eventually(() => load.rejected.size >= 100);
    await load.stop();
    // The last of them were journalled in one write with the one that failed.
    expect(load.seen.size).toBeLessThanOrEqual(49);
    expect(load.seen.size).toBeGreaterThan(49 - 8);
    await expectTheBooksToAgree();
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  });
});
