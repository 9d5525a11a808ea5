import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { complete, send, Site } from '../support/site.js';
import { adminCall } from '../webhooks/alerts.js';
import { allow, deny, Filter, LONG_MS, newSecret } from './filter.js';

let site: Site;
let filter: Filter;
beforeEach(async () => {
  site = await Site.make();
  filter = await new Filter().listen();
});
afterEach(async () => {
  await site.remove();
  await filter.close();
});

it('forwards nothing and leaves no row when the gateway is killed while a policy decides', async () => {
  const killed = site.gateway({ ADMIN_TOKEN });
  const url = await killed.ready();
  const key = await killed.firstKey();
  await complete(url, key);
  const policy = { name: 'dlp', url: filter.url, secret: newSecret(), timeout_ms: LONG_MS };
  await adminCall(url, 'POST', '/policies', policy);
  let closed = false;
  filter.respond = (res) => void res.on('close', () => (closed = true));
  const pending = await send(url, key);
  await eventually(() => filter.asked.length === 1);
  await killed.process.kill();
  await pending.closed;
  await eventually(() => closed);
  const next = site.gateway({ ADMIN_TOKEN });
  const again = await next.ready();
  // The policy is in force from the first call on.
  filter.respond = deny;
  const rejected = await send(again, key);
  expect((await rejected.answer()).status).toBe(403);
  filter.respond = allow;
  const id = await complete(again, key);
  await eventually(async () => {
    const rows = await site.database.query<{ id: string }>('SELECT id FROM request_log ORDER BY started_at');
    return rows.at(-1)?.id === id && rows.length === 2;
  });
  expect(site.provider.requests).toHaveLength(2);
  expect(await next.stop()).toEqual({ code: 0, signal: null });
});
