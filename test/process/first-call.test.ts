import { spawnSync } from 'node:child_process';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { bareEnvironment, Process } from '../support/process.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Workplace } from '../support/workplace.js';

let database: TestDatabase;
let workplace: Workplace;
let provider: RawProvider;

beforeAll(async () => {
  database = await createDatabase();
  workplace = await Workplace.make();
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', ['Content-Type: application/json'], '{"choices":[]}'));
  });
});
afterAll(async () => {
  await workplace.remove();
  await provider.stop();
  await database.drop();
});

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
  const [call] = provider.requests;
  expect(call!.head).toMatch(/^POST \/v1\/chat\/completions HTTP\/1\.1\r\n/);
  expect(call!.headers).toContainEqual(['Authorization', 'Bearer sk-0123456789']);
  expect(JSON.parse((await call!.body).bytes.toString())).toMatchObject({ model: 'gpt-4o-mini' });
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
});

it('says which settings are missing when there is no provider yet', async () => {
  const gateway = workplace.gateway({ DATABASE_URL: database.url });
  await gateway.process.until(
    /no provider yet: .* set PROVIDER_URL and PROVIDER_KEY and restart the gateway/,
  );
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
});
