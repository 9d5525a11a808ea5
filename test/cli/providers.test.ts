import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
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

interface Listed {
  data: { name: string; [field: string]: unknown }[];
}
const listed = async () => (JSON.parse((await cli(['list', '--json'])).stdout) as Listed).data;

describe('postern providers', () => {
  it('adds a preset for nothing but its secret, and never shows it', async () => {
    const added = await cli(['add', 'groq'], 'gsk-secret\n');
    expect(added).toMatchObject({ code: 0, stderr: '' });
    expect(added.stdout).toContain('https://api.groq.com/openai');
    const table = await cli(['list']);
    expect(table.stdout).toMatch(/^NAME +URL +AUTH +SECRET +DEFAULT +STATUS +SOURCE +UPDATED\n/);
    expect(table.stdout).toMatch(
      /^groq +https:\/\/api\.groq\.com\/openai +bearer +sealed +no +enabled +stored /m,
    );
    expect(JSON.stringify([added, table])).not.toContain('gsk-secret');
  });

  it('finishes calls without their client for presets that bill them in any case, and shows and changes it', async () => {
    const secret = ['--region', 'eu-central-1', '--access-key-id', 'AKIAIOSFODNN7EXAMPLE', '--json'];
    const rule = ({ stdout }: { stdout: string }) => (JSON.parse(stdout) as Listed['data'][0]).on_disconnect;
    expect(rule(await cli(['add', 'bedrock', ...secret], 'secret-access-key-0123456789'))).toBe('finish');
    const other = ['add', 'big', '--preset', 'bedrock', '--on-disconnect', 'cancel', ...secret];
    expect(rule(await cli(other, 'secret-access-key-0123456789'))).toBe('cancel');
    expect(rule(await cli(['add', 'cohere', '--json'], 'sk-cohere-0123456789'))).toBe('cancel');
    expect(rule(await cli(['update', 'big', '--on-disconnect', 'finish', '--json']))).toBe('finish');
    expect((await cli(['show', 'big'])).stdout).toMatch(/^on disconnect +finish$/m);
    const wrong = await cli(['update', 'big', '--on-disconnect', 'maybe']);
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('cancel')]);
    for (const name of ['bedrock', 'big', 'cohere']) await cli(['remove', name, '--yes']);
  });

  it('adds a preset for which callers send their own credential, and asks for no secret', async () => {
    const added = await cli(['add', 'claude-code', '--json']);
    expect(JSON.parse(added.stdout)).toMatchObject({ auth: 'client', secret_state: 'none' });
    const other = await cli(['add', 'own-too', '--url', 'https://api.example.test', '--auth', 'client']);
    expect(other.code).toBe(0);
    expect(other.stdout + other.stderr).toContain('x-gateway-key');
  });

  it('adds what a gateway that made its own master key can use', async () => {
    const provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], '{}')));
    const gateway = await startTestGateway({}, database);
    const env = { MASTER_KEY: '', DATA_DIR: gateway.dataDir };
    const added = await cli(
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

  it('encrypts again under another master key, as often as one likes', async () => {
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

describe('postern providers, with the credentials of clouds', () => {
  const AWS_SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
  const KEY_ID = 'AKIAIOSFODNN7EXAMPLE';
  const shown = async (name: string) =>
    JSON.parse((await cli(['show', name, '--json'])).stdout) as {
      auth: string;
      auth_settings: object;
      url: string;
    };

  it('adds Bedrock for a region, an access key ID and a secret from standard input', async () => {
    const added = await cli(
      ['add', 'bedrock', '--region', 'eu-central-1', '--access-key-id', KEY_ID],
      AWS_SECRET,
    );
    expect(added).toMatchObject({ code: 0 });
    expect(added.stdout).toContain('https://bedrock-runtime.eu-central-1.amazonaws.com');
    const settings = { region: 'eu-central-1', service: 'bedrock', access_key_id: KEY_ID };
    expect(await shown('bedrock')).toMatchObject({ auth: 'aws-sigv4', auth_settings: settings });
    const moved = await cli(['update', 'bedrock', '--region', 'eu-west-1']);
    expect(moved.code).toBe(0);
    expect(await shown('bedrock')).toMatchObject({ auth_settings: { ...settings, region: 'eu-west-1' } });
    const lines = (await cli(['show', 'bedrock'])).stdout;
    expect(lines).toMatch(/^access key id +AKIAIOSFODNN7EXAMPLE$/m);
    expect(JSON.stringify([added, moved, lines])).not.toContain('wJalrXUtnFEMI');
  });

  it('adds temporary credentials from the JSON that the AWS command line prints', async () => {
    const printed = {
      Version: 1,
      AccessKeyId: KEY_ID,
      SecretAccessKey: AWS_SECRET,
      SessionToken: 'session-token',
    };
    const input = JSON.stringify(printed, null, 2);
    expect(
      (await cli(['add', 'temporary', '--preset', 'bedrock', '--region', 'us-east-1'], input)).code,
    ).toBe(0);
    expect(await shown('temporary')).toMatchObject({ auth_settings: { access_key_id: KEY_ID } });

    const next = JSON.stringify({ ...printed, AccessKeyId: 'ASIAIOSFODNN7RENEWED' }, null, 2);
    const other = await cli(['update', 'temporary', '--secret', '--access-key-id', KEY_ID], next);
    expect([other.code, other.stderr]).toEqual([
      1,
      expect.stringContaining('--access-key-id: differs from the AccessKeyId of the secret; leave it out'),
    ]);
    expect(await cli(['update', 'temporary', '--secret'], next)).toMatchObject({ code: 0 });
    expect(await shown('temporary')).toMatchObject({
      auth_settings: { access_key_id: 'ASIAIOSFODNN7RENEWED' },
    });
  });

  it('adds providers to which the identity of the gateway gives access, and asks for no secret', async () => {
    const federation = ['--auth', 'anthropic-federation', '--identity-token', 'claude'];
    const ids = [
      '--federation-rule-id',
      'fdrl_1',
      '--organization-id',
      'org-1',
      '--service-account-id',
      'svac_1',
    ];
    const added = await cli(['add', 'keyless-claude', '--preset', 'anthropic', ...federation, ...ids]);
    expect(added).toMatchObject({ code: 0, stderr: expect.not.stringContaining('Secret') as string });
    // The setting may follow.
    const must = (name: string) =>
      `IDENTITY_TOKEN_FILES must name the identity token "${name}" on every replica`;
    expect(added.stdout).toContain(must('claude'));
    const other = await cli(['update', 'keyless-claude', '--identity-token', 'other']);
    expect([other.code, other.stdout]).toEqual([0, expect.stringContaining(must('other'))]);
    const back = await cli(['update', 'keyless-claude', '--identity-token', 'claude', '--quiet']);
    expect(back.stdout).not.toContain('IDENTITY_TOKEN_FILES');
    const path = await cli(['update', 'keyless-claude', '--identity-token', '/var/run/token']);
    expect([path.code, path.stderr]).toEqual([
      1,
      expect.stringContaining('--identity-token must be a name in IDENTITY_TOKEN_FILES'),
    ]);
    expect(await shown('keyless-claude')).toMatchObject({
      url: 'https://api.anthropic.com',
      auth: 'anthropic-federation',
      secret_state: 'none',
      auth_settings: {
        ...{ identity_token: 'claude', federation_rule_id: 'fdrl_1' },
        ...{ organization_id: 'org-1', service_account_id: 'svac_1' },
      },
    });
    expect((await cli(['show', 'keyless-claude'])).stdout).toMatch(/^federation rule id +fdrl_1$/m);
    const elsewhere = await cli(['update', 'keyless-claude', '--url', 'https://claude.example.com']);
    expect([elsewhere.code, elsewhere.stderr]).toEqual([
      1,
      expect.stringContaining(
        '--url must be at a host of the cloud itself, such as https://api.anthropic.com',
      ),
    ]);
    const half = await cli(['add', 'half', '--preset', 'vertex', '--source', 'federation']);
    expect([half.code, half.stderr]).toEqual([1, expect.stringContaining('--identity-token: is needed')]);
  });

  it('replaces a stored access key by the identity of the gateway, and stores one again', async () => {
    const key = ['--access-key-id', KEY_ID];
    await cli(['add', 'swapped', '--preset', 'bedrock', '--region', 'eu-central-1', ...key], AWS_SECRET);
    const kept = await cli(['update', 'swapped', '--credentials', 'instance']);
    expect([kept.code, kept.stderr]).toEqual([
      1,
      expect.stringContaining('must be null with these settings'),
    ]);
    expect(await cli(['update', 'swapped', '--credentials', 'instance', '--no-secret'])).toMatchObject({
      code: 0,
    });
    expect(await shown('swapped')).toMatchObject({
      secret_state: 'none',
      auth_settings: { credentials: 'instance', region: 'eu-central-1', service: 'bedrock' },
    });
  });

  it('adds Vertex AI with a key file of several lines, and replaces it', async () => {
    const { privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    const file = (client_email: string) =>
      JSON.stringify({ type: 'service_account', client_email, private_key: privateKey }, null, 2);
    expect((await cli(['add', 'vertex'], file('one@p.iam.gserviceaccount.com'))).code).toBe(0);
    expect((await cli(['update', 'vertex', '--secret'], file('two@p.iam.gserviceaccount.com'))).code).toBe(0);
    expect(await shown('vertex')).toMatchObject({
      auth: 'google',
      auth_settings: {
        client_email: 'two@p.iam.gserviceaccount.com',
        token_url: 'https://oauth2.googleapis.com/token',
      },
    });
    const none = await cli(['add', 'vertex2', '--preset', 'vertex']);
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('add "< <file>" to the command')]);
  });

  it('adds Azure OpenAI with Entra ID', async () => {
    const url = 'https://my.openai.azure.com/openai';
    const token = 'https://login.microsoftonline.com/my-tenant/oauth2/v2.0/token';
    const args = ['add', 'azure-entra', '--url', url, '--token-url', token, '--client-id', 'my-client'];
    expect((await cli(args, 'client-secret\n')).code).toBe(0);
    expect(await shown('azure-entra')).toMatchObject({
      auth: 'oauth2',
      auth_settings: {
        token_url: token,
        client_id: 'my-client',
        scope: 'https://cognitiveservices.azure.com/.default',
      },
    });
  });

  it.each([
    [['bedrock2', '--preset', 'bedrock'], '--region must be given'],
    [['b', '--preset', 'bedrock', '--region', 'eu-central-1'], '--access-key-id: is needed for this auth'],
    [
      ['b', '--preset', 'azure-entra', '--url', 'https://x.openai.azure.com'],
      '--token-url: is needed for this auth',
    ],
    [['b', '--url', 'https://x.example', '--region', 'eu-central-1'], 'region does not belong to bearer'],
  ])('says what is missing: add %j', async (args, message) => {
    const { code, stderr } = await cli(['add', ...args], AWS_SECRET);
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  });
});
