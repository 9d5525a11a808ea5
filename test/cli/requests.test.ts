import { createDays, insertRow } from '../request-log/rows.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { runHere } from './run-here.js';

let database: TestDatabase;
const cli = (...args: string[]) => runHere(args, { DATABASE_URL: database.url });

beforeAll(async () => {
  database = await createDatabase();
  await createDays(database, Date.now());
});
afterAll(() => database.drop());

describe('postern requests list', () => {
  it('has the reason of failed calls beside their result, if there are any', async () => {
    const quota = { status: 429, provider_error_type: 'tokens', provider_error_code: 'insufficient_quota' };
    await insertRow(database, new Date('2031-02-01T00:00:01Z'), quota);
    const refused = { status: 502, error_code: 'upstream_unreachable', error_cause: 'ECONNREFUSED' };
    await insertRow(database, new Date('2031-02-01T00:00:02Z'), refused);
    await insertRow(database, new Date('2031-02-02T00:00:01Z'));
    const ofDay = async (day: string, until: string) => {
      const { stdout } = await cli('requests', 'list', '--from', day, '--to', until);
      return stdout.split('\n');
    };
    const failed = await ofDay('2031-02-01', '2031-02-02');
    expect(failed[0]).toMatch(/^STARTED +RESULT +REASON +KEY /);
    expect(failed[1]).toMatch(/Z +502 +ECONNREFUSED /);
    expect(failed[2]).toMatch(/Z +429 +insufficient_quota /);
    expect((await ofDay('2031-02-02', '2031-02-03'))[0]).toMatch(/^STARTED +RESULT +KEY /);
  });
});

describe('postern requests export', () => {
  it('writes every row and tells where to go on', async () => {
    const { stdout, stderr, code } = await cli('requests', 'export', '--from', '2031-01-01T00:00:00Z');
    expect(code).toBe(0);
    const ids = stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { id: string }).id);
    const rows = await database.query<{ id: string }>(
      "SELECT id FROM request_log WHERE started_at >= '2031-01-01Z' ORDER BY started_at DESC",
    );
    expect(ids).toEqual(rows.map(({ id }) => id));
    const until = /--recorded-after (\S+)\n$/.exec(stderr)![1]!;
    expect((await cli('requests', 'export', '--recorded-after', until, '--format', 'csv')).stdout).toMatch(
      /^id,[^\n]*\n$/,
    );
  });

  it('rejects a format that it does not know', async () => {
    const { code, stderr } = await cli('requests', 'export', '--format', 'xml');
    expect([code, stderr]).toEqual([1, 'error: --format must be ndjson or csv\n']);
  });
});

describe('postern usage', () => {
  it('is a table for people and a page for programs', async () => {
    await cli('teams', 'create', 'search');
    const [team] = await database.query<{ id: string }>('SELECT id FROM team');
    const columns = { team_id: team!.id, prompt_tokens: 7, request_bytes: 10, response_bytes: 20 };
    await insertRow(database, new Date('2032-01-01T00:00:01Z'), columns);
    const { stdout } = await cli('usage', '--team', 'search');
    expect(stdout.split('\n').map((line) => line.split(/ +/).join(' '))).toEqual([
      'DAY TEAM CALLS ERRORS TOKENS PROMPT COMPLETION COST $ CACHED REASONING BYTES IN BYTES OUT',
      '2032-01-01 search 1 0 7 7 0 - 0 0 10 20',
      'TOTAL 1 0 7 7 0 - 0 0 10 20',
      '',
      'COST $ leaves out calls whose model has no price (1): ./postern prices missing',
      '',
    ]);
    const json = await cli('usage', '--group-by', 'model,hour', '--team', 'search', '--json');
    expect(JSON.parse(json.stdout)).toMatchObject({
      data: [{ hour: '2032-01-01T00:00:00Z', model: 'gpt-4o', calls: 1 }],
      next_cursor: null,
    });
    expect((await cli('usage', '--group-by', 'year')).stderr).toMatch(
      /^error: --group-by must be 1 to 8 of month, week/,
    );
  });
});
