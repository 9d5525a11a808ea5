import { startTestGateway, type TestGateway } from '../support/gateway.js';

/** What a browser sends for an address that somebody typed. */
const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway({ ADMIN_PORT: '0' });
});
afterAll(() => postern.stop());

it('GET / is a small page in a browser, which loads nothing and holds nothing of this gateway', async () => {
  const answer = await fetch(postern.url, { headers: BROWSER });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
  const html = await answer.text();
  expect(html).toContain('Postern is running');
  expect(html).toContain('<code>/v1</code>');
  expect(html).not.toMatch(/ptn_|<script|src=|http:/);
  // Each link leads somewhere; the documentation is on the other port only.
  const links = [...html.matchAll(/href="([^"]+)"/g)].map(([, link]) => link!);
  expect(links).toEqual(['/health/ready']);
  for (const link of links) expect((await fetch(postern.url + link)).status).toBe(200);
});

it('links to the documentation where it is, without a console', async () => {
  const own = await startTestGateway({ CONSOLE: 'off' }, postern.database);
  const html = await (await fetch(own.url, { headers: BROWSER })).text();
  expect(html).toContain('href="/docs"');
  expect((await fetch(`${own.url}/docs`)).status).toBe(200);
  await own.stop();
});

it.each([
  ['GET', undefined],
  ['GET', '*/*'],
  ['GET', 'application/json'],
  ['GET', 'application/json, text/html;q=0.9'],
  ['POST', 'text/html'],
])('stays 404 in JSON for %s with Accept %s', async (method, accept) => {
  const answer = await fetch(postern.url, { method, headers: accept === undefined ? {} : { accept } });
  expect([answer.status, answer.headers.get('x-gateway-error')]).toEqual([404, 'not_found']);
  expect(answer.headers.get('content-type')).toBe('application/json');
  expect(answer.headers.get('vary')).toBeNull();
  expect(await answer.json()).toMatchObject({ error: { code: 'not_found' } });
});
