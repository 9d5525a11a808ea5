import { createServer, type AddressInfo } from 'node:net';
import { Site } from '../support/site.js';

let site: Site;
beforeEach(async () => {
  site = await Site.make();
});
afterEach(() => site.remove());

it('a start with ADMIN_PORT prints both addresses, and the documentation is on the second', async () => {
  const gateway = site.gateway({ ADMIN_PORT: '0' });
  const url = await gateway.ready();
  const [, adminUrl] = await gateway.process.until(/^postern: the admin API is on (\S+) only$/m);
  const page = await fetch(`${adminUrl}/docs`);
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('Postern admin API')]);
  expect((await fetch(`${adminUrl}/docs-json`)).status).toBe(200);
  expect((await fetch(`${url}/docs-json`)).status).toBe(404);
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
});

it('a start on a taken ADMIN_PORT ends with one clear line', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await new Promise((listening) => taken.once('listening', listening));
  const port = String((taken.address() as AddressInfo).port);
  const gateway = site.gateway({ ADMIN_PORT: port });
  expect((await gateway.process.ended).code).toBe(1);
  expect(gateway.process.stderr).toBe(
    `postern: 127.0.0.1:${port} is in use by another process; stop it or set ADMIN_PORT to a free port\n`,
  );
  await new Promise((closed) => taken.close(closed));
});
