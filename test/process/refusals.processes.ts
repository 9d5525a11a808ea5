import { Site } from '../support/site.js';
import { eventually } from '../support/eventually.js';
import { TcpForwarder } from '../support/tcp-forwarder.js';

let site: Site;
beforeEach(async () => (site = await Site.make({ script: () => {} })));
afterEach(() => site.remove());

const stored = async () => {
  const [row] = await site.database.query<{ calls: number }>(
    'SELECT COALESCE(sum(calls), 0)::int AS calls FROM refusal',
  );
  return row!.calls;
};

it('a gateway that is stopped writes what it has counted; one that is killed loses no more than that', async () => {
  const gateway = site.gateway({});
  const url = await gateway.ready();
  await gateway.firstKey();
  const reject = async (at: string, count: number) => {
    for (let i = 0; i < count; i++) expect((await fetch(`${at}/v1/models`)).status).toBe(401);
  };
  await reject(url, 3);
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  await eventually(async () => (await stored()) === 3);

  const second = site.gateway();
  const next = await second.ready();
  await reject(next, 2);
  await eventually(async () => (await stored()) === 5);
  await reject(next, 1);
  second.process.signal('SIGKILL');
  await second.process.ended;
  expect([5, 6]).toContain(await stored());
});

it('a gateway that is stopped without Postgres says how many counts are lost', async () => {
  const forwarder = await TcpForwarder.to(site.database.url);
  await forwarder.open();
  const gateway = site.gateway({ DATABASE_URL: forwarder.url });
  const url = await gateway.ready();
  await gateway.firstKey();
  await forwarder.close();
  for (let i = 0; i < 4; i++) expect((await fetch(`${url}/v1/models`)).status).toBe(401);
  await gateway.stop();
  expect(gateway.process.stdout + gateway.process.stderr).toContain(
    'The counts of 4 rejected requests are lost, because Postgres is unavailable.',
  );
  expect(await stored()).toBe(0);
});

it('nothing is counted with REFUSALS=off', async () => {
  const gateway = site.gateway({ REFUSALS: 'off' });
  const url = await gateway.ready();
  await gateway.firstKey();
  expect((await fetch(`${url}/v1/models`)).status).toBe(401);
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  expect(await stored()).toBe(0);
});
