import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { FakeSink } from '../sinks/fake-sink.js';

/** What the archive counts and returns is compared with Postgres by `npm run test:sinks`. */
const OLD = 'from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z';
/** The first day with a partition: a fresh log has none of yesterday. */
const TODAY = `${new Date().toISOString().slice(0, 10)}T00:00:00Z`;
const EMPTY = JSON.stringify({ meta: [], data: [], rows: 0 });

let postern: TestGateway;
let clickhouse: FakeSink;
beforeAll(async () => {
  postern = await startTestGateway({ REQUEST_LOG_ARCHIVE: 'warehouse' });
  clickhouse = await new FakeSink().listen();
  clickhouse.behave = (_, res) => void res.writeHead(200, { 'content-type': 'application/json' }).end(EMPTY);
});
afterAll(async () => {
  await clickhouse.close();
  await postern.stop();
});

const usage = (query: string) =>
  postern.admin<{ source: string; totals: { calls: number } }>('GET', `/usage?${query}`);
const exported = async (query: string) => {
  const response = await fetch(`${postern.url}/admin/v1/requests/export?${query}`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  return [response.status, await response.text()] as const;
};
const queries = () => clickhouse.received.map(({ body }) => body).filter((body) => body.includes('FINAL'));

describe('an archive', () => {
  never('that is not there is an error for old days, not a sum that is too small', async () => {
    const missing = 'REQUEST_LOG_ARCHIVE names warehouse, which is no sink of the kind clickhouse';
    await expect(usage(OLD)).rejects.toThrow(missing);
    expect(await exported(OLD)).toEqual([409, expect.stringContaining(missing)]);
    expect((await usage('')).source).toBe('log');
    expect((await usage(`from=${TODAY}`)).source).toBe('log');
  });

  it('counts and exports old days, and is not asked about others', async () => {
    await postern.admin('POST', '/sinks', {
      name: 'warehouse',
      kind: 'clickhouse',
      url: clickhouse.url,
      target: 'postern.request_log',
    });
    expect(await usage(OLD)).toMatchObject({ source: 'archive', totals: { calls: 0 } });
    expect(queries()).toEqual([expect.stringContaining('FROM postern.request_log FINAL')]);
    // Days without a partition, of a question that only rows answer.
    expect(await usage(`${OLD.replaceAll('2020', '2025')}&group_by=end_user`)).toMatchObject({
      source: 'archive',
    });
    expect(await exported(`${OLD}&format=csv`)).toEqual([
      200,
      expect.stringMatching(/^[^\n]*started_at[^\n]*\n$/),
    ]);

    const asked = queries().length;
    for (const query of [`from=${TODAY}`, `from=${TODAY}&group_by=end_user`, '', 'group_by=end_user'])
      expect((await usage(query)).source).toBe('log');
    expect((await exported(`from=${TODAY}`))[0]).toBe(200);
    expect((await exported(`recorded_after=${new Date(Date.now() + 86_400_000).toISOString()}`))[0]).toBe(
      200,
    );
    expect(queries()).toHaveLength(asked);
  });

  it('is told the groups of teams, which it does not have, and the teams of a group', async () => {
    const { id } = await postern.admin<{ id: string }>('POST', '/teams', { name: 'grouped' });
    await postern.admin('POST', '/groups', { name: 'dev', teams: ['grouped'] });
    await usage(`${OLD}&group_by=group&group=dev`);
    // The sink may have asked for something of its own since.
    const { path } = clickhouse.received.findLast((one) => one.path.includes('param_grouped_teams'))!;
    const { searchParams } = new URL(path, clickhouse.url);
    const sent = ['grouped_teams', 'team_groups', 'group_teams'].map((name) =>
      searchParams.get(`param_${name}`),
    );
    expect(sent).toEqual([JSON.stringify([id]), '["dev"]', id]);
  });

  it('cannot sort by a percentile', async () => {
    await expect(usage(`${OLD}&sort=p95`)).rejects.toThrow(
      /400 .*cannot be p95 for days that only the archive/,
    );
    expect((await usage(`from=${TODAY}&sort=p95`)).source).toBe('log');
  });

  never('that fails is an error', async () => {
    clickhouse.behave = (_, res) =>
      void res.writeHead(500).end('Code: 241. DB::Exception: (MEMORY_LIMIT_EXCEEDED)');
    await expect(usage(OLD)).rejects.toThrow(/409 .*The archive, sink warehouse, does not respond/);
    expect((await exported(OLD))[0]).toBe(409);
  });

  it('whose secret cannot be decrypted is an error that says so', async () => {
    await postern.database.query('UPDATE sink SET sealed = sha256(sealed), version = version + 1');
    await expect(usage(OLD)).rejects.toThrow(
      /409 .*The secret of the archive, sink warehouse, cannot be decrypted: it /,
    );
  });
});
