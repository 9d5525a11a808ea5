import { AccountedLoad, type LoggedCall } from '../support/accounted-load.js';
import { eventually } from '../support/eventually.js';
import { LogCluster } from '../support/log-cluster.js';
import { Workplace } from '../support/workplace.js';

const ROUNDS = 3;
const CALLS_MEANWHILE = 400;

let cluster: LogCluster;
let workplace: Workplace;
let load: AccountedLoad;
let key: string;

beforeAll(async () => {
  cluster = await LogCluster.start();
  workplace = await Workplace.make();
  load = await AccountedLoad.start();
  const first = workplace.gateway({ DATABASE_URL: cluster.url });
  key = await first.firstKey();
  await first.stop();
});
afterAll(async () => {
  await load.close();
  await workplace.remove();
  await cluster.remove();
});

const rows = () => cluster.query<LoggedCall>('SELECT idempotency_key, outcome, status FROM request_log');

const TROUBLES: Record<string, { spoil: () => Promise<unknown>; restore: () => Promise<unknown> }> = {
  stopped: { spoil: () => cluster.stop(), restore: () => cluster.begin() },
  killed: { spoil: () => cluster.signal('SIGKILL'), restore: () => cluster.begin() },
  frozen: { spoil: () => cluster.signal('SIGSTOP'), restore: () => cluster.signal('SIGCONT') },
  'out of connections': { spoil: () => cluster.crowdOut(), restore: () => cluster.disperse() },
  'without its table': {
    spoil: () => cluster.query('ALTER TABLE request_log RENAME TO hidden'),
    restore: () => cluster.query('ALTER TABLE hidden RENAME TO request_log'),
  },
  restarted: { spoil: () => cluster.stop().then(() => cluster.begin()), restore: () => Promise.resolve() },
};

it.each(Object.keys(TROUBLES))(
  'loses no row and fails no known key while Postgres is %s',
  async (name) => {
    const { spoil, restore } = TROUBLES[name]!;
    const gateway = workplace.gateway({ DATABASE_URL: cluster.url, PROVIDER_URL: load.provider.url });
    const url = await gateway.ready();
    await eventually(async () => (await fetch(`${url}/health/ready`)).status === 200);
    load.run(url, key, 16);
    const more = async (calls: number) => {
      const enough = load.answered.size + calls;
      await eventually(() => load.answered.size >= enough);
    };
    for (let round = 0; round < ROUNDS; round++) {
      await more(CALLS_MEANWHILE);
      await spoil();
      await more(CALLS_MEANWHILE);
      // Once per fault the outage lasts until the writer has given its connection up.
      if (round === 0 && name !== 'restarted') await gateway.process.until(/Rows wait for Postgres/);
      await restore();
    }
    await more(CALLS_MEANWHILE);
    await load.stop();
    await eventually(async () => (await rows()).length >= load.seen.size);
    expect(load.judge(await rows())).toEqual([]);
    expect([...load.rejected.values()]).toEqual([]);
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    process.stdout.write(
      `${name} x${ROUNDS}: ${load.seen.size} requests at the provider so far, as many rows; 0 rejected\n`,
    );
  },
  180_000,
);
