import { existsSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadEnv } from '../../src/config/env.js';
import { AppModule } from '../../src/app.module.js';
import { startEmbeddedPostgres } from '../../src/embedded-postgres/embedded-postgres.js';
import { type Gateway, startGateway } from '../../src/runtime/gateway.js';
import { eventually } from '../support/eventually.js';
import { runCli } from './run-cli.js';

let dataDir: string;
let server: string;
const cli = (...args: string[]) => runCli(args, { DATA_DIR: dataDir });
const serverRuns = () => existsSync(join(server, 'cluster', 'postmaster.pid'));

async function start(): Promise<Gateway & { firstKey?: string }> {
  let firstKey: string | undefined;
  const env = loadEnv({ NODE_ENV: 'test', PORT: '0', DATA_DIR: dataDir, LOG_LEVEL: 'fatal' });
  const gateway = await startGateway(AppModule, env, {
    report: () => {},
    onFirstKey: (key) => (firstKey = key),
    onPermanentError: () => {},
  });
  return Object.assign(gateway, { firstKey });
}

// A first start makes the folder; each test begins with the gateway and its server stopped.
beforeAll(async () => {
  dataDir = await realpath(await mkdtemp(join(tmpdir(), 'postern-cli-data-')));
  await (await start()).stop();
  const postgres = await startEmbeddedPostgres({ dataDir });
  server = postgres.folder;
  await postgres.stop();
});
afterAll(async () => {
  await rm(dataDir, { recursive: true, force: true });
  if (!server.startsWith(dataDir)) await rm(server, { recursive: true, force: true });
});

describe('postern on the embedded database', () => {
  it('starts the server for itself and stops it again', async () => {
    expect(serverRuns()).toBe(false);
    const { code, stdout } = await cli('keys', 'list', '--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ data: [{ team: 'default', name: 'first' }] });
    expect(serverRuns()).toBe(false);
  });

  it('works several times at once, and the last one stops the server', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const ran = await Promise.all(
      names.map((name) => cli('keys', 'create', '--team', 'default', '--name', name)),
    );
    expect(ran.map(({ code, stderr }) => [code, code === 0 ? '' : stderr])).toEqual(names.map(() => [0, '']));
    expect(serverRuns()).toBe(false);
  });

  it('uses the server of a running gateway, which accepts the new key at once, and leaves it running', async () => {
    const gateway = await start();
    try {
      expect(gateway.firstKey).toBeUndefined();
      const made = await cli('keys', 'create', '--team', 'default', '--name', 'live', '--json');
      expect(made).toMatchObject({ code: 0, stderr: '' });
      const { id, key } = JSON.parse(made.stdout) as { id: string; key: string };
      const status = async () =>
        (await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;
      expect(await status()).toBe(503); // known; there is no provider here
      expect(await cli('keys', 'revoke', id)).toMatchObject({ code: 0 });
      await eventually(async () => (await status()) === 401);
      expect(serverRuns()).toBe(true);
    } finally {
      await gateway.stop();
    }
    expect(serverRuns()).toBe(false);
  });
});
