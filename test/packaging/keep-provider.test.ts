import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { parseEnv } from 'node:util';

interface Terminal {
  env: NodeJS.ProcessEnv;
  input: PassThrough;
  output: PassThrough;
}
let keepProvider: (path: string, terminal: Terminal) => Promise<void>;
let folder: string;
let path: string;

beforeAll(async () => {
  const script = join(__dirname, '../../scripts/keep-provider.mjs');
  ({ keepProvider } = (await import(script)) as { keepProvider: typeof keepProvider });
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-env-'));
  path = join(folder, '.env');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const KEY = 'sk-0123456789';
const GIVEN = { PROVIDER_URL: 'https://api.example', PROVIDER_KEY: KEY };

/** @param typed what a person types; null without a terminal. @returns what is printed */
async function keep(env: NodeJS.ProcessEnv, typed: string | null): Promise<string> {
  const input = Object.assign(new PassThrough(), { isTTY: typed !== null });
  const output = Object.assign(new PassThrough(), { isTTY: typed !== null });
  let printed = '';
  output.on('data', (text: Buffer) => (printed += text.toString()));
  if (typed === '') input.end();
  else if (typed !== null) input.write(typed);
  await keepProvider(path, { env, input, output });
  return printed;
}

const stored = () => parseEnv(readFileSync(path, 'utf8'));

describe('a provider that is set for one start only', () => {
  it('is saved in .env by a line feed on a terminal, readable by the owner only, and then not asked for', async () => {
    expect(await keep(GIVEN, '\n')).toMatch(
      /this start only[^]*Save PROVIDER_URL and PROVIDER_KEY in \.env\?/,
    );
    expect(stored()).toEqual(GIVEN);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await keep(GIVEN, '\n')).toBe('');
    expect(stored()).toEqual(GIVEN);
  });

  it.each([`it's`, 'a b#c', '"x"', `'"\``.slice(0, 2), '$HOME'])('is saved as it is: %j', async (secret) => {
    await keep({ ...GIVEN, PROVIDER_KEY: secret }, 'y\n');
    expect(stored()).toEqual({ ...GIVEN, PROVIDER_KEY: secret });
  });

  it('is added after what is there, and overwrites nothing', async () => {
    writeFileSync(path, 'PORT=8081\nPROVIDER_URL=\nPROVIDER_KEY=sk-old');
    await keep({ ...GIVEN, PROVIDER_AUTH: 'x-api-key' }, 'yes\n');
    expect(stored()).toEqual({
      PORT: '8081',
      PROVIDER_URL: GIVEN.PROVIDER_URL,
      PROVIDER_KEY: 'sk-old',
      PROVIDER_AUTH: 'x-api-key',
    });
  });

  it.each([['n\n'], ['No\n'], ['']])('is not saved after %j', async (typed) => {
    await keep(GIVEN, typed);
    expect(existsSync(path)).toBe(false);
  });

  it('is shown as lines for .env where nobody can be asked, without the key', async () => {
    const printed = await keep(GIVEN, null);
    expect(printed).toContain(`\n  PROVIDER_URL=https://api.example\n  PROVIDER_KEY=<the provider's key>\n`);
    expect(printed).not.toContain(KEY);
    expect(existsSync(path)).toBe(false);
  });

  it.each([
    ['there is none', { PROVIDER_KEY: KEY }],
    ['in production', { ...GIVEN, NODE_ENV: 'production' }],
    ['a URL that the start rejects', { ...GIVEN, PROVIDER_URL: 'nonsense' }],
    ['a URL with what callers append', { ...GIVEN, PROVIDER_URL: 'https://api.example/v1' }],
    ['the URL of an endpoint', { ...GIVEN, PROVIDER_URL: 'https://api.example/v1/chat/completions/' }],
    ['a URL with a password', { ...GIVEN, PROVIDER_URL: 'https://user:secret@api.example' }],
  ])('is not mentioned: %s', async (_, env) => {
    expect([await keep(env, null), await keep(env, '\n')]).toEqual(['', '']);
    expect(existsSync(path)).toBe(false);
  });

  it('is not mentioned if .env has one', async () => {
    writeFileSync(path, 'PROVIDER_URL=https://another.example\n');
    expect(await keep(GIVEN, '\n')).toBe('');
    expect(stored()).toEqual({ PROVIDER_URL: 'https://another.example' });
  });
});
