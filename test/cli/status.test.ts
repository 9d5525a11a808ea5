import { packageVersion } from '../../src/platform/package-root.js';
import { Journal } from '../../src/request-log/journal/journal.js';
import { createDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { PostgresRelay } from '../support/postgres-relay.js';
import { setPatience } from '../support/patience.js';
import { runHere } from './run-here.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());
afterEach(() => jest.restoreAllMocks());

const remote = (...args: string[]) =>
  runHere(args, { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN });

describe('postern status', () => {
  it('shows a healthy gateway with its sinks, and ends with 0', async () => {
    await gateway.admin('POST', '/sinks', {
      name: 'receiver',
      kind: 'http',
      url: 'https://rows.example.com/',
      from: new Date().toISOString(),
    });
    const { code, stdout, stderr } = await remote('status');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^status +ok$[^]*^processes +1$/m);
    expect(stdout).toMatch(new RegExp(`^version +${packageVersion().replaceAll('.', '\\.')}`, 'm'));
    expect(stdout).toMatch(/^journal +ok, [\d,]+ bytes$/m);
    expect(stdout).toMatch(/^rows to write +\d+ in memory, 0 in the journal only, oldest file \d+ s$/m);
    expect(stdout).toMatch(/^sink receiver +(current|sending|failing)/m);

    const asJson = await remote('status', '--json');
    expect(JSON.parse(asJson.stdout)).toMatchObject({
      status: 'ok',
      reasons: [],
      processes: [{}],
      sinks: [{ name: 'receiver' }],
    });
  });

  it('says why a gateway is not healthy, and ends with 1', async () => {
    jest.spyOn(gateway.gateway.app.get(Journal), 'degraded', 'get').mockReturnValue('EIO');
    const { code, stdout } = await remote('status');
    expect(stdout).toMatch(/^status +degraded\nreason +the journal is degraded\n(?!reason)/);
    expect(stdout).toMatch(/^journal +degraded \(EIO\), /m);
    expect(code).toBe(1);
    const asJson = await remote('status', '--json');
    expect([asJson.code, JSON.parse(asJson.stdout)]).toEqual([
      1,
      expect.objectContaining({ status: 'degraded', reasons: ['the journal is degraded'] }),
    ]);
  });

  it('says what still works while Postgres is unavailable', async () => {
    const restore = setPatience(1, 'Postgres before degraded');
    const database = await createDatabase();
    const relay = await PostgresRelay.to(database.url);
    const alone = await startTestGateway({ DATABASE_URL: relay.url }, database);
    const env = { POSTERN_URL: alone.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
    try {
      relay.set('*', 'cut');
      await eventually(async () =>
        (await (await fetch(`${alone.url}/health/ready`)).text()).includes('cached'),
      );
      const { code, stdout, stderr } = await runHere(['status'], env);
      expect(stdout).toMatch(/^status +degraded\nreason +Postgres is unavailable; cached keys still work\n$/);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^error: The database is unavailable/)]);
      relay.set('*', 'none');
    } finally {
      await alone.stop();
      await relay.close();
      await database.drop();
      restore();
    }
  });

  it('does not take the database for a gateway that runs', async () => {
    const { code, stdout, stderr } = await runHere(['status'], { DATABASE_URL: gateway.database.url });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(
      'error: no gateway runs with these settings on this machine; start it, or name one with --url\n',
    );
  });

  it('ends with 1 if nothing responds', async () => {
    const { code, stderr } = await runHere(['status'], {
      POSTERN_URL: 'http://127.0.0.1:9',
      POSTERN_ADMIN_TOKEN: ADMIN_TOKEN,
    });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^error: the gateway at .* cannot be reached/)]);
  });
});
