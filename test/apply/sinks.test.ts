import { ApplyRun } from './apply-run.js';

const SECRETS = { CLICKHOUSE: 'postern:canary-0123456789', RECEIVER: 'https://rows.example.com/?k=canary-q' };
const FILE = `
sinks:
  - name: warehouse
    kind: clickhouse
    url: https://clickhouse.example.com:8443
    target: postern.request_log
    secret: { env: CLICKHOUSE }
    from: 2030-01-01T00:00:00Z
  - name: stream
    kind: jetstream
    url: tls://nats.example.com:4222
    target: postern.requests
    secret: { file: nats.creds }
  - { name: receiver, kind: http, url: { env: RECEIVER }, enabled: false }
`;
const CREDENTIALS = '-----BEGIN NATS USER JWT-----\ncanary-jwt\n------END NATS USER JWT------\n';

interface Sink {
  name: string;
  url: string;
  enabled: boolean;
  recorded_until: string;
  version: number;
}

let run: ApplyRun;
beforeAll(async () => {
  run = await ApplyRun.start();
  run.env = SECRETS;
  await run.write('nats.creds', CREDENTIALS);
});
afterAll(() => run.stop());

const sinks = async () => (await run.postern.admin<{ data: Sink[] }>('GET', '/sinks')).data;

describe('sinks in the file of postern apply', () => {
  it('are created in one change, without a secret in any output, and stay as they are the second time', async () => {
    const before = await run.audit();
    const plan = await run.plan(FILE);
    expect(plan.map(({ action, type, name }) => `${action} ${type} ${name}`)).toEqual([
      ...['create sink warehouse', 'create sink stream', 'create sink receiver', 'update sink receiver'],
    ]);
    expect(await sinks()).toEqual([]);
    expect(await run.audit()).toEqual(before);

    const applied = await run.apply(FILE);
    expect(applied).toMatchObject({ code: 0, stderr: '' });
    const created = await sinks();
    expect(created).toMatchObject([
      { name: 'receiver', kind: 'http', url: 'https://rows.example.com/…', target: null, enabled: false },
      { name: 'stream', kind: 'jetstream', url: 'tls://nats.example.com:4222', target: 'postern.requests' },
      { name: 'warehouse', kind: 'clickhouse', target: 'postern.request_log', enabled: true },
    ]);
    const entries = (await run.audit()).slice(0, -before.length);
    expect(entries.map(({ action, subject_name: name }) => `${action} ${name}`)).toEqual([
      ...['applied configuration', 'changed receiver', 'created receiver', 'created stream'],
      'created warehouse',
    ]);
    for (const text of [applied.stdout, JSON.stringify([plan, entries, created])])
      expect(text).not.toContain('canary');

    expect(await run.apply(FILE)).toEqual({ code: 0, stderr: '', stdout: 'No changes.\n' });
    expect((await sinks()).map(({ version }) => version)).toEqual(created.map(({ version }) => version));
    expect(await run.audit()).toHaveLength(before.length + entries.length);
  });

  it('shows what differs, another secret without showing it, and goes on where the sink is', async () => {
    const place = async () => (await sinks())[2]!.recorded_until;
    const before = await place();
    const changed = FILE.replace('target: postern.request_log', 'target: postern.calls').replace(
      '2030-01-01',
      '2031-01-01',
    );
    const env = { CLICKHOUSE: 'postern:canary-another', RECEIVER: `${SECRETS.RECEIVER}2` };
    const { stdout, stderr } = await run.apply(changed, [], env);
    expect(stderr).toBe('');
    expect(stdout).toContain(
      '~ sink warehouse\n    target: "postern.request_log" → "postern.calls"\n    secret: changed\n',
    );
    expect(stdout).toContain('~ sink receiver\n    url: changed\nApplied 2 changes.\n');
    expect(stdout).not.toContain('canary');
    expect(await place()).toBe(before);
    expect((await run.apply(FILE)).stdout).toContain('Applied 2 changes.');
  });

  it('stay paused, until the file says otherwise', async () => {
    await run.postern.admin('PATCH', '/sinks/stream', { enabled: false });
    expect((await run.apply(FILE)).stdout).toBe('No changes.\n');
    const explicit = FILE.replace('kind: jetstream', 'kind: jetstream\n    enabled: true');
    expect((await run.apply(explicit)).stdout).toContain('enabled: false → true');
  });

  it('change nothing at all if one of them is wrong: every problem is named with its line', async () => {
    const before = await run.audit();
    const wrong = `
teams:
  - name: beside
sinks:
  - { name: Rows!, kind: http, url: "https://rows.example.com/" }
  - { name: kafka, kind: kafka, url: "https://rows.example.com/" }
  - name: inside
    kind: clickhouse
    url: http://169.254.169.254
    target: "t; DROP TABLE x"
    secret: in-the-file
  - { name: missing, kind: http, url: { env: NO_SUCH_URL }, secret: { file: no-such.file } }
  - { name: missing, kind: http, url: "https://rows.example.com/", retries: 3 }
  - { name: from, kind: http, url: "https://rows.example.com/", from: yesterday, target: a }
`;
    const { code, stdout, stderr } = await run.apply(wrong);
    expect([code, stdout]).toEqual([1, '']);
    expect(
      stderr
        .trim()
        .split('\n')
        .map((line) => line.slice(0, 74)),
    ).toEqual([
      'error: postern.yaml:5:7: sinks[0].name: must be 1 to 63 lower-case letters',
      'error: postern.yaml:6:20: sinks[1].kind: must be clickhouse, jetstream or ',
      'error: postern.yaml:9:5: sinks[2].url: must not point to a link-local, uns',
      'error: postern.yaml:10:5: sinks[2].target: must be the name of a table, wi',
      'error: postern.yaml:11:5: sinks[2].secret: must not be in the file, which ',
      'error: postern.yaml:12:34: sinks[3].url: the environment variable NO_SUCH_',
      'error: postern.yaml:12:61: sinks[3].secret: the file cannot be read (ENOEN',
      'error: postern.yaml:13:7: sinks[4].name: this sink is listed more than onc',
      'error: postern.yaml:13:68: sinks[4].retries: unknown field; allowed are na',
      'error: postern.yaml:14:65: sinks[5].from: must be an ISO 8601 time with a ',
      'error: postern.yaml:14:82: sinks[5].target: must be left out for http: the',
    ]);
    expect(stderr).not.toContain('in-the-file');
    expect(await run.audit()).toEqual(before);

    // What only the stored sinks can tell.
    const other = '{ name: warehouse, kind: http, url: "https://rows.example.com/" }';
    const { stderr: kind } = await run.apply(`teams:\n  - name: beside\nsinks:\n  - ${other}\n`);
    expect(kind).toMatch(
      /^error: postern\.yaml:4:24: sinks\[0\]\.kind: the kind of a sink cannot change, and this one is clickhouse; choose/,
    );
    const many = Array.from({ length: 9 }, (_, i) => `  - ${other.replace('warehouse', `more-${i}`)}\n`);
    const { stderr: full } = await run.apply(`teams:\n  - name: beside\nsinks:\n${many.join('')}`);
    expect(full).toMatch(/^error: postern\.yaml:11:5: sinks\[7\]: There can be 10 sinks/);
    expect(await run.audit()).toEqual(before);
  });

  it('are removed by --prune if the file has sinks but not these', async () => {
    expect((await run.apply('teams: [{ name: beside }]\n', ['--prune'])).code).toBe(0);
    expect(await sinks()).toHaveLength(3);
    expect((await run.apply('sinks: []\n', ['--prune'])).stderr).toMatch(/sinks: is empty, and prune would/);
    const one = FILE.slice(0, FILE.indexOf('  - name: stream'));
    const dry = await run.apply(one, ['--prune', '--dry-run']);
    expect(dry.stdout).toBe('- sink receiver\n- sink stream\nPlan: 2 changes. Nothing was changed.\n');
    expect(await sinks()).toHaveLength(3);
    expect((await run.apply(one, ['--prune', '--yes'])).code).toBe(0);
    expect((await sinks()).map(({ name }) => name)).toEqual(['warehouse']);
    expect((await run.audit())[0]).toMatchObject({
      action: 'applied',
      after: { prune: true, changes: ['delete sink receiver', 'delete sink stream'] },
    });
  });
});
