import type { SinkView } from '../../src/sinks/sinks.schema.js';
import { CLICKHOUSE_COLUMNS } from '../../src/sinks/clickhouse-table.js';
import { runHere } from '../cli/run-here.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { FakeClickHouse } from './fake-clickhouse.js';
import { FakeSink } from './fake-sink.js';
import { insertCalls } from './log-rows.js';

const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({ MASTER_KEY });
});
afterAll(() => gateway.stop());

const sinks = (args: string[], input = '') =>
  runHere(
    ['sinks', ...args],
    { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN },
    undefined,
    input,
  );
const json = async <T>(args: string[]): Promise<T> => {
  const { code, stdout, stderr } = await sinks([...args, '--json']);
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as T;
};

it('adds, lists, pauses, resumes, replays and removes a sink', async () => {
  const server = await new FakeClickHouse().listen();
  const receiver = await new FakeSink().listen();
  await insertCalls(gateway.database.url, 20);
  const added = await sinks([
    ...['add', 'warehouse', 'clickhouse', '--url', server.url],
    ...['--target', 'postern.request_log', '--json'],
  ]);
  expect([added.code, JSON.parse(added.stdout)]).toMatchObject([
    0,
    { name: 'warehouse', kind: 'clickhouse', target: 'postern.request_log' },
  ]);
  await eventually(() => server.stored.length === 20);
  await sinks(
    ['add', 'receiver', 'http', '--url', `${receiver.url}/rows`, '--secret', '--from', 'now'],
    'canary\n',
  );
  await insertCalls(gateway.database.url, 3);
  await eventually(() => receiver.ids.length === 3 && server.stored.length === 23);
  expect(receiver.received[0]!.headers.authorization).toBe('Bearer canary');

  const listed = await eventually(async () => {
    const { stdout } = await sinks(['list', '--wide']);
    return /warehouse .*\b23\b/.test(stdout) && /^receiver +http +current +\d+ s +3 /m.test(stdout) && stdout;
  });
  expect(listed).toMatch(/^NAME +KIND +STATE +LAG +ROWS/m);
  expect(listed).not.toContain('canary');

  expect(await sinks(['pause', 'warehouse'])).toMatchObject({
    code: 0,
    stderr: '',
    stdout: 'Paused sink warehouse.\n',
  });
  expect(
    (await json<{ data: SinkView[] }>(['list'])).data.map(({ name, state }) => [name, state]),
  ).toContainEqual(['warehouse', 'paused']);
  await insertCalls(gateway.database.url, 2);
  await eventually(() => receiver.ids.length === 5);
  expect(server.stored).toHaveLength(23);
  expect(await sinks(['resume', 'warehouse'])).toMatchObject({
    code: 0,
    stdout: 'Resumed sink warehouse.\n',
  });
  await eventually(() => server.stored.length === 25);

  await eventually(async () => (await gateway.admin<SinkView>('GET', '/sinks/warehouse')).rows_sent === 25);
  const replayed = await sinks(['replay', 'warehouse', '--from', '2020-01-31']);
  expect(replayed).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/from 2020-01-31T.* on again/) as string,
  });
  await eventually(() => server.stored.length === 50);
  expect(new Set(server.ids).size).toBe(25);

  expect(await sinks(['remove', 'warehouse', '--yes'])).toMatchObject({ code: 0 });
  expect((await json<{ data: SinkView[] }>(['list'])).data.map(({ name }) => name)).toEqual(['receiver']);
  expect(await sinks(['pause', 'warehouse'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no sink has this name or id') as string,
  });
  await server.close();
});

it('updates a sink, and lists its last error with the time', async () => {
  const server = await new FakeSink().listen();
  server.behave = ({ headers }, res) =>
    void res.writeHead(headers.authorization === 'Bearer new' ? 204 : 401).end();
  await sinks(['add', 'updated', 'http', '--url', server.url, '--from', 'now', '--secret'], 'old\n');
  await insertCalls(gateway.database.url, 3);
  const list = async () => (await sinks(['list', '--wide'])).stdout;
  const failing = await eventually(async () => /^updated .* failing .*$/m.exec(await list()));
  expect(failing[0]).toMatch(/ \d{4}-\d\d-\d\d \d\d:\d\d The receiver rejected the secret \(status 401\)/);

  expect(await sinks(['update', 'updated', '--secret'], 'new\n')).toMatchObject({
    code: 0,
    stdout: `Updated sink updated (${server.url}/).\nSee its state: ./postern sinks list\n`,
  });
  await eventually(async () => (await gateway.admin<SinkView>('GET', '/sinks/updated')).rows_sent === 3);
  const moved = await sinks(['update', 'updated', '--url', 'http://127.0.0.1:9/']);
  expect(moved).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('--secret must be sent again') as string,
  });
  expect(await json<SinkView>(['update', 'updated', '--name', 'renamed', '--no-secret'])).toMatchObject({
    name: 'renamed',
  });
  await sinks(['remove', 'renamed', '--yes']);
  await server.close();
});

it('counts a duration in --from back from now, as other commands do', async () => {
  const hoursAgo = ({ recorded_until: at }: SinkView) => (Date.now() - Date.parse(at)) / 3_600_000;
  const server = await new FakeSink().listen();
  const added = await json<SinkView>(['add', 'recent', 'http', '--url', server.url, '--from', '24h']);
  expect(hoursAgo(added)).toBeGreaterThanOrEqual(24);
  expect(hoursAgo(added)).toBeLessThan(25);
  await sinks(['pause', 'recent']);
  const replayed = await json<SinkView>(['replay', 'recent', '--from', '2d']);
  expect(hoursAgo(replayed)).toBeGreaterThanOrEqual(48);
  expect(hoursAgo(replayed)).toBeLessThan(49);
  await sinks(['remove', 'recent', '--yes']);
  await server.close();
});

it('prints the table with every column, for one node and for a cluster', async () => {
  const one = await sinks(['ddl', 'clickhouse', '--table', 'postern.request_log']);
  expect([one.code, one.stderr]).toEqual([0, '']);
  for (const [name, type] of CLICKHOUSE_COLUMNS) expect(one.stdout).toContain(`\n  ${name} ${type}`);
  expect(one.stdout).toMatch(/^CREATE TABLE IF NOT EXISTS postern\.request_log \($/m);
  expect(one.stdout).toMatch(/^ENGINE = ReplacingMergeTree\(recorded_at\)$/m);
  expect(one.stdout).toMatch(/^SETTINGS non_replicated_deduplication_window = 10000;$/m);
  expect(one.stdout).toMatch(
    /VIEW IF NOT EXISTS postern\.request_log_exact AS SELECT \* FROM postern\.request_log FINAL;/,
  );
  expect(one.stdout).not.toContain('CLUSTER');

  const { stdout } = await sinks([
    'ddl',
    'clickhouse',
    '--table',
    'postern.request_log',
    '--cluster',
    'main',
  ]);
  expect(stdout.match(/ ON CLUSTER 'main'/g)).toHaveLength(3);
  expect(stdout).toMatch(/^CREATE TABLE IF NOT EXISTS postern\.request_log_local ON CLUSTER 'main' \($/m);
  expect(stdout).toContain(
    "ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}', recorded_at)",
  );
  expect(stdout).toMatch(/^SETTINGS replicated_deduplication_window = 10000;$/m);
  expect(stdout).toContain("ENGINE = Distributed('main', 'postern', 'request_log_local', sipHash64(id));");
});

it.each([
  [['ddl', 'http'], 'only clickhouse has tables'],
  [['ddl', 'clickhouse', '--table', 'a; DROP TABLE b'], '--table must be the name of a table'],
  [['ddl', 'clickhouse', '--cluster', "a' b"], '--cluster must be the name of a cluster'],
  [['replay', 'receiver', '--from', 'tomorrow?'], '--from'],
  [['update', 'receiver'], 'nothing to change: give --name'],
])('rejects %j and names the remedy', async (args, message) => {
  expect(await sinks(args)).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining(message) as string,
  });
});
