import { spawnSync } from 'node:child_process';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { bareEnvironment, Process } from '../support/process.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Site } from '../support/site.js';
import { TcpForwarder } from '../support/tcp-forwarder.js';
import type { Workplace } from '../support/workplace.js';

let site: Site;
let database: TestDatabase;
let workplace: Workplace;
let provider: RawProvider;

beforeAll(async () => {
  site = await Site.make({
    script: async ({ body, socket }) => {
      await body;
      socket.write(answer('200 OK', ['Content-Type: application/json'], '{"choices":[]}'));
    },
  });
  ({ database, workplace, provider } = site);
});
afterAll(() => site.remove());

/** Pastes what was printed into a shell; where there is no curl, takes it apart by its own lines. */
async function paste(command: string): Promise<string> {
  if (spawnSync('curl', ['--version']).status === 0) {
    const shell = new Process('sh', ['-c', command], { env: bareEnvironment() });
    await shell.ended;
    return shell.stdout;
  }
  const url = /curl (\S+)/.exec(command)![1]!;
  const headers = new Headers();
  for (const [, name, value] of command.matchAll(/-H '([^:]+): ([^']+)'/g)) headers.append(name!, value!);
  const body = /-d '([^']+)'/.exec(command)![1]!;
  return (await fetch(url, { method: 'POST', headers, body })).text();
}

it('prints a call that works when pasted', async () => {
  const settings = { DATABASE_URL: database.url, PROVIDER_URL: provider.url, PROVIDER_KEY: 'sk-0123456789' };
  const gateway = workplace.gateway(settings);
  const [, command] = await gateway.process.until(/try it:\n\n([^]+)\n\n/);
  expect(await paste(command!)).toBe('{"choices":[]}');
  const call = provider.requests.find(({ head }) => head.startsWith('POST '));
  expect(call!.head).toMatch(/^POST \/v1\/chat\/completions HTTP\/1\.1\r\n/);
  expect(call!.headers).toContainEqual(['Authorization', 'Bearer sk-0123456789']);
  expect(JSON.parse((await call!.body).bytes.toString())).toMatchObject({ model: 'gpt-4o-mini' });
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
});

describe('without a provider', () => {
  let empty: TestDatabase;
  beforeEach(async () => {
    empty = await createDatabase();
  });
  afterEach(() => empty.drop());

  it('prints the command that adds one, as it can be typed, and no call, which would fail', async () => {
    const gateway = workplace.gateway({ DATABASE_URL: empty.url });
    const key = await gateway.firstKey();
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    const { stdout } = gateway.process;
    expect(stdout).toMatch(
      /no provider yet: .* \(\.\/postern providers add openai --default\), or set PROVIDER_URL and PROVIDER_KEY and restart the gateway\n/,
    );
    expect(stdout.split('no provider yet').length).toBe(2);
    expect(stdout).toContain(key);
    expect(stdout).not.toMatch(/curl|try it/);
  });

  it('neither when Postgres is reached only after the start', async () => {
    const forwarder = await TcpForwarder.to(empty.url);
    const gateway = workplace.gateway({ DATABASE_URL: forwarder.url });
    await gateway.listening();
    expect(gateway.process.stdout).not.toContain('no provider yet');
    await forwarder.open();
    await gateway.firstKey();
    await gateway.process.until(/no provider yet/);
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    await forwarder.close();
    expect(gateway.process.stdout).not.toMatch(/curl|try it/);
  });
});

it('says that the provider rejects PROVIDER_KEY, and serves', async () => {
  const rejecting = await RawProvider.start(
    ({ socket }) => void socket.write(answer('401 Unauthorized', [], '{"error":{}}')),
  );
  const gateway = workplace.gateway({
    DATABASE_URL: database.url,
    PROVIDER_URL: rejecting.url,
    PROVIDER_KEY: 'sk-wrong-0123456789',
  });
  const url = await gateway.ready();
  await gateway.process.until(/WARN +Providers: The provider rejected PROVIDER_KEY \(401\)\./);
  expect((await fetch(`${url}/health/ready`)).status).toBe(200);
  expect(gateway.process.stdout + gateway.process.stderr).not.toContain('sk-wrong');
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  await rejecting.stop();
});
