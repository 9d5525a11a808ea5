import { randomBytes } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { runCli } from './run-cli.js';
import { runHere } from './run-here.js';

const newKey = () => randomBytes(32).toString('base64');
const masterKey = newKey();
let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

const settings = (env: Record<string, string>) => ({
  DATABASE_URL: database.url,
  MASTER_KEY: masterKey,
  ...env,
});
const cli = (args: string[], input = '', env: Record<string, string> = {}) =>
  runHere(['providers', ...args], settings(env), undefined, input);
/** In a process of its own, with a pipe for its standard input. */
const piped = (args: string[], input: string, env: Record<string, string> = {}) =>
  runCli(['providers', ...args], settings(env), undefined, input);

interface Listed {
  data: { name: string; [field: string]: unknown }[];
}
const listed = async () => (JSON.parse((await cli(['list', '--json'])).stdout) as Listed).data;

describe('postern providers', () => {
  it('adds a preset for nothing but its secret, and never shows it', async () => {
    const added = await piped(['add', 'groq'], 'gsk-secret\n');
    expect(added).toMatchObject({ code: 0, stderr: '' });
    expect(added.stdout).toContain('https://api.groq.com/openai');
    const table = await cli(['list']);
    expect(table.stdout).toMatch(/^NAME +URL +AUTH +SECRET +DEFAULT +STATUS +SOURCE +UPDATED\n/);
    expect(table.stdout).toMatch(
      /^groq +https:\/\/api\.groq\.com\/openai +bearer +sealed +no +enabled +stored /m,
    );
    expect(JSON.stringify([added, table])).not.toContain('gsk-secret');
  });

  it('adds what a gateway that made its own master key can use', async () => {
    const provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], '{}')));
    const gateway = await startTestGateway({}, database);
    const env = { MASTER_KEY: '', DATA_DIR: gateway.dataDir };
    const added = await piped(
      ['add', 'own', '--url', provider.url, '--auth', 'api-key', '--default'],
      'sk-own',
      env,
    );
    expect(added.code).toBe(0);
    const headers = { authorization: `Bearer ${gateway.key}` };
    await eventually(async () => (await fetch(`${gateway.url}/v1/models`, { headers })).status === 200);
    expect(provider.requests[0]!.headers).toContainEqual(['api-key', 'sk-own']);

    const fine = await cli(['test', 'own'], '', env);
    expect([fine.code, fine.stdout]).toEqual([0, expect.stringMatching(/^own: ok, status 200, \d+ ms\n/)]);
    await provider.stop();
    const away = await cli(['test', 'own', '--json'], '', env);
    expect(away.code).toBe(1);
    expect(JSON.parse(away.stdout)).toMatchObject({ ok: false, code: 'refused', status: null });
    expect(await cli(['remove', 'own'])).toMatchObject({ code: 0, stderr: '' });
    await gateway.stop();
  });

  it('names the keys that are limited to a removed provider', async () => {
    expect((await cli(['add', 'brief', '--url', 'https://brief.example', '--no-secret'])).code).toBe(0);
    const create = ['keys', 'create', '--team', 'default', '--providers', 'brief', '--name'];
    for (const name of ['only', 'ended']) await runHere([...create, name], settings({}));
    await runHere(['keys', 'revoke', 'default/ended'], settings({}));
    const { code, stdout } = await cli(['remove', 'brief']);
    expect([code, stdout]).toEqual([
      0,
      'Removed provider brief.\nKeys that are limited to it: default/only. ' +
        'To change one: ./postern keys update <key> --providers <names>\n',
    ]);
  });

  it('asks for no secret where none is needed', async () => {
    const { code, stdout } = await cli(['add', 'ollama', '--json']);
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      { name: 'ollama', url: 'http://127.0.0.1:11434', secret_state: 'none' },
    ]);
    const big = await cli(
      ['add', 'big', '--preset', 'vllm', '--url', 'http://10.0.0.5:8000', '--secret'],
      'tok',
    );
    expect(big.code).toBe(0);
    expect((await cli(['add', 'bare', '--url', 'https://bare.example', '--no-secret'])).code).toBe(0);
    const byName = Object.fromEntries((await listed()).map(({ name, ...rest }) => [name, rest]));
    expect(byName).toMatchObject({
      big: { url: 'http://10.0.0.5:8000', secret_state: 'sealed' },
      bare: { secret_state: 'none' },
    });
  });

  it.each([
    [['add', 'openai'], '', 'no secret on standard input'],
    [['add', 'azure'], 'sk', '--url must be given, for example https://<resource>.openai.azure.com/openai'],
    [['add', 'groq'], 'sk', 'already exists'],
    [['remove', 'nobody'], '', 'no provider has this name'],
  ])('exits 1 for %j and says what would do', async (args, input, message) => {
    const { code, stdout, stderr } = await cli(args, input);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/\n {4}at /);
  });

  it('takes no secret as an argument', async () => {
    const { code, stderr } = await cli(['add', 'openai', '--secret', 'sk-argument']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('too many arguments')]);
  });

  it('seals with no key of its own making', async () => {
    const env = { MASTER_KEY: '' };
    const { code, stderr } = await cli(['add', 'mistral'], 'sk', env);
    expect([code, stderr]).toEqual([1, expect.stringContaining('There is no master key')]);
  });

  it('seals anew under another master key, as often as one likes', async () => {
    const next = newKey();
    const rotation = { MASTER_KEY: next, MASTER_KEY_PREVIOUS: masterKey };
    const first = await cli(['reseal', '--json'], '', rotation);
    expect([first.code, JSON.parse(first.stdout)]).toEqual([
      0,
      { resealed: ['big', 'groq'], current: [], unreadable: [] },
    ]);
    const records = await database.query<{ name: string }>(
      "SELECT subject_name AS name FROM audit_log WHERE action = 'resealed' AND actor LIKE 'cli:%' ORDER BY id",
    );
    expect(records.map(({ name }) => name)).toEqual(['big', 'groq']);
    const again = await cli(['reseal', '--json'], '', { MASTER_KEY: next });
    expect(JSON.parse(again.stdout)).toEqual({
      resealed: [],
      current: ['big', 'groq'],
      unreadable: [],
    });
    expect(again.stderr).toContain('MASTER_KEY_PREVIOUS is not set for this command');
    expect(first.stderr).toBe('');
    const lost = await cli(['reseal'], '', { MASTER_KEY: newKey() });
    expect([lost.code, lost.stderr]).toEqual([1, expect.stringContaining('big, groq')]);
  });
});
