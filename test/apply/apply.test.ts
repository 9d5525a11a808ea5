import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runHere } from '../cli/run-here.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';

const SECRET = 'sk-openai-0123456789';
const SLACK = 'https://hooks.slack.com/services/T0/B0/hidden-0123456789';
const FILE = `
teams:
  - name: search
    limits: { requests_per_minute: 600 }
    budgets: [{ usd: "500.00", period: month, alert_at: [80] }]
    self_service: { keys_per_user: 2, max_days: 30, budget_usd_per_month: "50", providers: [main] }
  - name: ads
    models: [gpt-5*]
providers:
  - name: openai
    url: https://api.openai.com
    secret: { env: OPENAI }
  - name: bedrock
    url: https://bedrock-runtime.eu-central-1.amazonaws.com
    auth: aws-sigv4
    secret: { file: aws.json }
    auth_settings: { region: eu-central-1 }
  - { name: local, url: "http://127.0.0.1:9", secret: null }
routes:
  - name: main
    targets:
      - { provider: openai }
      - { provider: local, models: { gpt-5.6-mini: a, gpt-5: b } }
    default: true
prices:
  - catalog: local
    model: llama-3*
    input: "0.20"
    tiers: [{ above: 1000, input: "0.40" }]
    extra: { web_searches: "10.00" }
keys:
  - { team: search, name: ci, providers: [main], cache: { ttl_seconds: 60 } }
  - { team: ads, name: site, expires_at: 2030-01-31T12:00:00Z, websockets: true }
webhooks:
  - { url: { env: SLACK }, events: [key.expiring], format: slack }
  - { url: "https://alerts.example.com/postern", events: [budget.exhausted] }
`;

interface Change {
  action: string;
  type: string;
  name: string;
  fields: Record<string, unknown>;
}
interface Audit {
  data: { action: string; subject_type: string; subject_name: string; after: object | null }[];
}

let postern: TestGateway;
let folder: string;
beforeAll(async () => {
  postern = await startTestGateway();
});
afterAll(() => postern.stop());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-apply-'));
  await writeFile(
    join(folder, 'aws.json'),
    JSON.stringify({ AccessKeyId: 'AKIAIOSFODNN7EXAMPLE', SecretAccessKey: 'aws-secret-0123456789' }),
  );
});
afterEach(() => rm(folder, { recursive: true }));

/** Applies this text. */
async function apply(text: string, args: string[] = [], env: Record<string, string> = {}) {
  await writeFile(join(folder, 'postern.yaml'), text);
  const variables = { POSTERN_URL: postern.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
  return runHere(
    ['apply', '-f', 'postern.yaml', ...args],
    { ...variables, OPENAI: SECRET, SLACK, ...env },
    folder,
  );
}
const planOf = (stdout: string) =>
  (JSON.parse(stdout) as { plan: Change[] }).plan.map(
    ({ action, type, name }) => `${action} ${type} ${name}`,
  );
const audit = async () => (await postern.admin<Audit>('GET', '/audit?limit=500')).data;
const count = async (table: string) =>
  (await postern.database.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${table}`))[0]!.n;

describe('postern apply', () => {
  it('shows a plan, makes everything in one transaction, and changes nothing the second time', async () => {
    const before = await audit();
    const dry = await apply(FILE, ['--dry-run', '--json']);
    expect(dry.code).toBe(0);
    expect((await apply(FILE, ['--dry-run', '--exit-code'])).code).toBe(2);
    expect(dry.stderr).toBe('');
    expect(planOf(dry.stdout)).toEqual([
      ...['create provider openai', 'create provider bedrock', 'create provider local', 'create route main'],
      ...['create team search', 'create team ads'],
      ...['create price local/llama-3*', 'create key search/ci', 'create key ads/site'],
      ...['create webhook https://hooks.slack.com/…', 'create webhook https://alerts.example.com/…'],
    ]);
    expect(await audit()).toEqual(before);

    const rejected = await apply(FILE);
    expect(rejected.code).toBe(1);
    expect(rejected.stderr).toMatch(
      /^error: postern\.yaml:32:5: keys\[0\]: this key is new, .*--secrets-out/,
    );
    expect(await audit()).toEqual(before);

    const applied = await apply(FILE, ['--secrets-out', 'new.ndjson']);
    expect(applied.stderr).toBe('');
    expect(applied.stdout).toMatch(
      /^\+ provider openai\n[^]*\n\+ team search\n\+ team ads\n[^]*\nApplied 11 changes\.\nThe new secrets are in new/,
    );
    const [ci, site, webhook] = (await readFile(join(folder, 'new.ndjson'), 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { name: string; secret: string });
    expect([ci!.name, site!.name, webhook!.name]).toEqual([
      ...['search/ci', 'ads/site', 'https://alerts.example.com/postern'],
    ]);
    expect(ci!.secret).toMatch(/^ptn_\w{38}$/);
    expect(webhook!.secret).toMatch(/^whsec_/);
    expect((await stat(join(folder, 'new.ndjson'))).mode & 0o777).toBe(0o600);
    // The key works.
    const response = await fetch(`${postern.url}/self/v1/key`, {
      headers: { authorization: `Bearer ${ci!.secret}` },
    });
    expect(response.status).toBe(200);

    const entries = (await audit()).slice(0, -before.length || undefined);
    expect(entries.length).toBe(12);
    expect(entries[0]).toMatchObject({ action: 'applied', subject_type: 'configuration' });
    for (const text of [JSON.stringify(entries), dry.stdout, applied.stdout])
      for (const secret of [SECRET, 'hidden-', 'aws-secret', ci!.secret, webhook!.secret])
        expect(text).not.toContain(secret);

    const again = await apply(FILE);
    expect(again).toEqual({ code: 0, stderr: '', stdout: 'No changes.\n' });
    expect(await apply(FILE, ['--dry-run', '--exit-code'])).toEqual({
      code: 0,
      stderr: '',
      stdout: 'No changes.\n',
    });
    expect((await audit()).length).toBe(before.length + 12);
  });

  it('shows what differs, and notices another secret without showing it', async () => {
    const changed = FILE.replace('requests_per_minute: 600', 'requests_per_minute: 700').replace(
      'ttl_seconds: 60',
      'ttl_seconds: 90',
    );
    const { stdout } = await apply(changed, [], { OPENAI: 'sk-another-0123456789' });
    expect(stdout).toMatch(/~ team search\n {4}limits\.requests_per_minute: 600 → 700\n/);
    expect(stdout).toContain('~ provider openai\n    secret: changed\n');
    expect(stdout).toMatch(/~ key search\/ci\n {4}cache\.ttl_seconds: 60 → 90\n/);
    expect(stdout).toContain('Applied 3 changes.');
    expect(stdout).not.toContain('sk-another');
    expect((await apply(changed, [], { OPENAI: 'sk-another-0123456789' })).stdout).toBe('No changes.\n');
    expect((await apply(FILE)).stdout).toContain('Applied 3 changes.');
  });

  it('shows the members that differ alone, and no value cut', async () => {
    const note = 'long '.repeat(60).trim();
    const changed = FILE.replace('alert_at: [80] }', 'alert_at: [80, 90] }, { usd: "9.00", period: day }')
      .replace('gpt-5.6-mini: a, gpt-5: b', 'gpt-5.6-mini: c, gpt-5: b')
      .replace('models: [gpt-5*]', `models: [gpt-5*, o3]\n    note: ${note}`);
    const { stdout } = await apply(changed, ['--dry-run']);
    const lines = stdout.split('\n');
    expect(lines).toContain('    targets[1].models["gpt-5.6-mini"]: "a" → "c"');
    expect(lines).toContain('    budgets[0].alert_at: [80] → [80,90]');
    expect(stdout).toMatch(/^ {4}budgets\[1\]: none → \{.*"usd":"9\.00.*\}$/m);
    expect(lines).toContain('    models: ["gpt-5*"] → ["gpt-5*","o3"]');
    expect(lines).toContain(`    note: null → "${note}"`);
    expect(stdout).not.toContain('500.00');
    expect(stdout).not.toContain('…\n');
  });

  it('leaves what was disabled in an emergency', async () => {
    const { data } = await postern.admin<{ data: { id: string }[] }>('GET', '/keys?team=search&name=ci');
    await postern.admin('PATCH', `/keys/${data[0]!.id}`, { disabled: true });
    expect((await apply(FILE)).stdout).toBe('No changes.\n');
    const explicit = FILE.replace('name: ci,', 'name: ci, disabled: false,');
    expect((await apply(explicit)).stdout).toContain('disabled: true → false');
  });

  it('leaves what happens to calls without their client; a new provider has it by its URL', async () => {
    const rules = async () => {
      const { data } = await postern.admin<{ data: { name: string; on_disconnect: string }[] }>(
        'GET',
        '/providers',
      );
      return Object.fromEntries(data.map(({ name, on_disconnect: rule }) => [name, rule]));
    };
    expect(await rules()).toEqual({ openai: 'cancel', bedrock: 'finish', local: 'cancel' });
    await postern.admin('PATCH', '/providers/local', { on_disconnect: 'finish' });
    await postern.admin('PATCH', '/providers/bedrock', { on_disconnect: 'cancel' });
    expect((await apply(FILE)).stdout).toBe('No changes.\n');
    expect(await rules()).toMatchObject({ bedrock: 'cancel', local: 'finish' });
    const explicit = FILE.replace('name: local,', 'name: local, on_disconnect: cancel,');
    expect((await apply(explicit)).stdout).toContain('on_disconnect: "finish" → "cancel"');
    const ofKey = FILE.replace('name: ci,', 'name: ci, on_disconnect: finish,');
    expect((await apply(ofKey)).stdout).toContain('on_disconnect: null → "finish"');
    // Of a key, what is absent is the default, as ever.
    expect((await apply(FILE)).stdout).toContain('on_disconnect: "finish" → null');
  });

  it('names every error of a file with its line, and changes nothing', async () => {
    const before = await audit();
    const text = `
teams:
  - name: new
  - name: new
    limit: 3
providers:
  - { name: x, url: https://x.example.com, secret: sk-in-the-file }
  - { name: y, url: https://y.example.com, secret: { env: MISSING } }
keys:
  - { team: nobody, name: a, providers: [none] }
routes:
  - { name: r, targets: [{ provider: absent }] }
`;
    const { code, stdout, stderr } = await apply(text);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr.split('\n').map((line) => line.slice(0, 72))).toEqual([
      'error: postern.yaml:4:5: teams[1].name: this team is listed more than on',
      expect.stringMatching(/^error: postern\.yaml:5:5: teams\[1\]\.limit: unknown field; allowed are/),
      'error: postern.yaml:7:44: providers[0].secret: must not be in the file, ',
      'error: postern.yaml:8:44: providers[1].secret: the environment variable ',
      '',
    ]);
    expect(stderr).not.toContain('sk-in-the-file');

    // What the services reject is found once the document itself is right.
    const { stderr: second } = await apply(text.replace('    limit: 3\n', '').replace('  - name: new\n', ''));
    expect(second).not.toContain('nobody');
    const right = text
      .replace('  - name: new\n    limit: 3\n', '')
      .replace('sk-in-the-file', 'null')
      .replace('{ env: MISSING }', 'null');
    const { stderr: third } = await apply(right);
    expect(third).toMatch(/^error: postern\.yaml:8:7: keys\[0\]\.team: no team/);
    expect(third).toMatch(/\nerror: postern\.yaml:10:16: routes\[0\]\.targets: there is no provider absent/);
    expect(await audit()).toEqual(before);
  });

  it('names every syntax error', async () => {
    const { code, stderr } = await apply('teams: [\n  - name: a\nteams: []\n');
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: postern\.yaml:\d+:\d+: /);
    expect((await apply('')).stderr).toMatch(/^error: postern\.yaml:1:1: must be a mapping/);
  });

  it('prunes only the lists that are given, and never by an empty one', async () => {
    const empty = await apply('keys: []\n', ['--prune']);
    expect(empty.stderr).toMatch(/^error: postern\.yaml:1:1: keys: is empty, and prune would end all/);
    const { stdout, stderr } = await apply('routes:\n  - { name: other, targets: [{ provider: local }] }\n', [
      '--prune',
    ]);
    expect(stderr).toContain('- route main');
    expect(stdout).toBe('+ route other\n- route main\nApplied 2 changes.\n');
    expect(await count('gateway_key')).toBe(3);

    const keys = await apply('keys:\n  - { team: ads, name: site, expires_at: 2030-01-31T12:00:00Z }\n', [
      '--prune',
    ]);
    expect(keys.stdout).toContain('- key search/ci (revoked)\n');
    expect((await apply(FILE, ['--dry-run'])).stderr).toContain('this key is revoked permanently');
  });

  it('undoes everything if a statement fails halfway', async () => {
    await postern.database.query(`
      CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no more routes'; END $$;
      CREATE TRIGGER fail BEFORE INSERT ON route FOR EACH ROW EXECUTE FUNCTION fail()`);
    const before = [await count('team'), await count('audit_log')];
    const text = 'teams: [{ name: half }]\nroutes: [{ name: half, targets: [{ provider: local }] }]\n';
    const { code, stderr } = await apply(text);
    await postern.database.query('DROP FUNCTION fail CASCADE');
    expect([code, stderr]).toEqual([1, expect.stringContaining('Internal gateway error')]);
    expect([await count('team'), await count('audit_log')]).toEqual(before);
    expect((await apply(text)).code).toBe(0);
  });

  it('moves a provider to another team in the document that gives its team another default', async () => {
    const url = 'http://127.0.0.1:9';
    const mover = (team: string) => ({ name: 'mover', url, secret: null, team });
    const plan = async (document: object) =>
      (await postern.admin<{ plan: Change[] }>('POST', '/apply', { document })).plan.map(
        ({ action, type, name }) => `${action} ${type} ${name}`,
      );
    const teams = [{ name: 'from', default_provider: 'mover' }, { name: 'to' }];
    await plan({ teams, providers: [mover('from')] });
    // The team gives the provider up, then that moves, then its new team may have it by default.
    const moved = [{ name: 'to', default_provider: 'mover' }, { name: 'from' }];
    expect(await plan({ teams: moved, providers: [mover('to')] })).toEqual([
      'update team from',
      'update provider mover',
      'update team to',
    ]);
    expect(await plan({ teams: moved, providers: [mover('to')] })).toEqual([]);
    await expect(plan({ providers: [mover('from')] })).rejects.toThrow(
      /400 .*document.providers.0.team: mover .* is the default_provider of to/,
    );
  });

  it('applies two documents one after the other', async () => {
    const document = { teams: [{ name: 'race' }], keys: [{ team: 'race', name: 'one' }] };
    const post = () =>
      postern.admin<{ plan: Change[]; secrets: object[] }>('POST', '/apply', {
        document,
        return_secrets: true,
      });
    const results = await Promise.all([post(), post(), post()]);
    expect(results.map(({ plan, secrets }) => [plan.length, secrets.length]).sort()).toEqual([
      ...[
        [0, 0],
        [0, 0],
        [2, 1],
      ],
    ]);
  });

  it('changes nothing if the plan is another one than the one that was looked at', async () => {
    const document = { teams: [{ name: 'late' }] };
    const planned = await postern.admin<{ plan_id: string }>('POST', '/apply', { document, dry_run: true });
    await postern.admin('POST', '/teams', { name: 'late', models: ['a'] });
    const late = postern.admin('POST', '/apply', { document, plan_id: planned.plan_id });
    await expect(late).rejects.toThrow(/409 .*The plan has changed/);
  });
});
