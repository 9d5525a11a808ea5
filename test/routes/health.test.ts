import { Scrape } from '../observability/scrape.js';
import { RoutesService } from '../../src/routes/routes.service.js';
import { replies, Routed } from './routed.js';

let routed: Routed;
beforeAll(async () => {
  routed = await Routed.start();
});
afterAll(() => routed.gateway.stop());

interface Shown {
  targets: { provider: string; resting_until: string | null }[];
}

it('shows which targets rest, and until when, in the admin API and in the metrics', async () => {
  const name = await routed.route();
  const show = () => routed.gateway.admin<Shown>('GET', `/routes/${name}`);
  const resting = async (provider: string) =>
    (await Scrape.of(routed.gateway.url)).sum('postern_route_target_resting', { route: name, provider });
  expect((await show()).targets.map(({ resting_until }) => resting_until)).toEqual([null, null]);
  expect([await resting('a'), await resting('b')]).toEqual([0, 0]);
  routed.script({ a: replies('429 Too Many Requests', ['Retry-After: 40']) });
  const before = Date.now();
  expect((await routed.call(name)).body.toString()).toBe('b');
  const [a, b] = (await show()).targets;
  const after = Date.now();
  const until = Date.parse(a!.resting_until!);
  expect(until).toBeGreaterThanOrEqual(before + 39_000);
  expect(until).toBeLessThanOrEqual(after + 41_000);
  expect(b!.resting_until).toBeNull();
  expect([await resting('a'), await resting('b')]).toEqual([1, 0]);
  const { data } = await routed.gateway.admin<{ data: Shown[] }>('GET', '/routes');
  expect(data.flatMap(({ targets }) => targets.filter((one) => one.resting_until !== null))).toHaveLength(1);
  // What is seen is not part of the route: a change that changes nothing keeps the version, and nothing is audited.
  const targets = [{ provider: 'a' }, { provider: 'b' }];
  expect(await routed.gateway.admin('PATCH', `/routes/${name}`, { targets })).toMatchObject({ version: 1 });
});

it('has a default route at the start', async () => {
  const { app } = routed.gateway.gateway;
  expect(app.get(RoutesService).lacksDefault).toBe(true);
  const name = await routed.route({ default: true });
  expect(app.get(RoutesService).lacksDefault).toBe(false);
  await routed.gateway.admin('PATCH', `/routes/${name}`, { default: false });
  expect(app.get(RoutesService).lacksDefault).toBe(true);
});
