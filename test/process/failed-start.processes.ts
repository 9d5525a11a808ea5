import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, Server } from 'node:net';
import { join } from 'node:path';
import { Injectable, Module } from '@nestjs/common';
import { loadEnv } from '../../src/config/env.js';
import { startGateway } from '../../src/runtime/gateway.js';
import { addToApp, rootModule } from '../support/app-modules.js';
import type { TestDatabase } from '../support/database.js';
import { RawClient, request } from '../support/raw-client.js';
import { Site } from '../support/site.js';
import type { Workplace } from '../support/workplace.js';
import { unusedPort } from '../support/unused-port.js';

let site: Site;
let database: TestDatabase;
let workplace: Workplace;
beforeEach(async () => {
  site = await Site.make();
  ({ database, workplace } = site);
});
afterEach(async () => {
  jest.restoreAllMocks();
  await site.remove();
});

it('on a taken ADMIN_PORT ends although a call came between the two ports', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const [port, adminPort] = [await unusedPort(), (taken.address() as AddressInfo).port];
  const listen = Reflect.get(Server.prototype, 'listen') as (this: Server, ...to: unknown[]) => Server;
  let client: RawClient | undefined;
  // The second listen is put off until a call has come to the first.
  jest.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server, ...args: unknown[]) {
    if ((args[0] as { port: number }).port !== adminPort) return listen.apply(this, args);
    void RawClient.connect(port).then(async (connected) => {
      client = connected;
      client.send(request('GET /v1/models', ['Authorization: Bearer x']));
      const health = await RawClient.connect(port);
      health.send(request('GET /health/live', []));
      expect((await health.answer()).status).toBe(200);
      listen.apply(this, args);
    });
    return this;
  });
  const env = loadEnv({
    NODE_ENV: 'test',
    DATABASE_URL: database.url,
    DATA_DIR: workplace.dataDir,
    LOG_LEVEL: 'fatal',
    PORT: `${port}`,
    ADMIN_PORT: `${adminPort}`,
  });
  const options = { report: () => {}, onFirstKey: () => {}, onPermanentError: () => {} };
  await expect(startGateway(rootModule(), env, options)).rejects.toThrow('set ADMIN_PORT to a free port');
  await client!.closed;
  await new Promise((closed) => taken.close(closed));
});

it('on a taken port ends before it makes a database', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const port = (taken.address() as AddressInfo).port;
  const gateway = workplace.gateway({ PORT: `${port}` });
  expect(await gateway.process.ended).toEqual({ code: 1, signal: null });
  expect(gateway.process.stderr).toBe(
    `postern: 127.0.0.1:${port} is in use by another process; stop it or set PORT to a free port\n`,
  );
  expect(gateway.process.stdout).toBe('');
  expect(await readdir(workplace.dataDir)).not.toContain('postgres');
  await new Promise((closed) => taken.close(closed));
});

it('names misspelt settings before the errors, and speaks of no calls', async () => {
  await writeFile(join(workplace.folder, '.env'), 'LOGLEVEL=debug\n');
  const gateway = workplace.gateway({ DATABASE_URL: `${database.url}_absent`, PROVIDER_ULR: 'x' });
  expect(await gateway.process.ended).toEqual({ code: 1, signal: null });
  expect(gateway.process.stdout).toMatch(
    /^postern: LOGLEVEL in \.env is not a setting; did you mean LOG_LEVEL\?\npostern: PROVIDER_ULR is not a setting; did you mean PROVIDER_URL\?\n/,
  );
  expect(gateway.process.stdout + gateway.process.stderr).not.toContain('in flight');
});

@Injectable()
class Absent {}

@Injectable()
class NeedsAbsent {
  constructor(readonly absent: Absent) {}
}

@Module({ providers: [NeedsAbsent] })
class NeedsAbsentModule {}

it('on an error in a module leaves it to the caller to print it', async () => {
  addToApp(NeedsAbsentModule);
  const written: string[] = [];
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  const env = loadEnv({
    NODE_ENV: 'test',
    DATABASE_URL: database.url,
    DATA_DIR: workplace.dataDir,
    PORT: '0',
  });
  const options = { report: () => {}, onFirstKey: () => {}, onPermanentError: () => {} };
  const starting = startGateway(rootModule(), env, options);
  await expect(starting).rejects.toThrow("Nest can't resolve dependencies of the NeedsAbsent (?)");
  jest.restoreAllMocks();
  expect(written).toEqual([]);
});
