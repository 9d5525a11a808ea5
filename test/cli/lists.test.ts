import { insertRow, KEY } from '../request-log/rows.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { runHere } from './run-here.js';

let database: TestDatabase;
const cli = (...args: string[]) => runHere(args, { DATABASE_URL: database.url });

beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

describe('postern teams', () => {
  it('creates and lists teams', async () => {
    expect((await cli('teams', 'list')).stdout).toBe('No teams found.\n');
    const { code, stdout } = await cli('teams', 'create', 'search', '--json');
    expect(code).toBe(0);
    const team = JSON.parse(stdout) as object;
    expect(team).toMatchObject({ name: 'search', disabled: false });
    expect(JSON.parse((await cli('teams', 'list', '--json')).stdout)).toEqual({
      data: [team],
      next_cursor: null,
    });
    expect((await cli('teams', 'create', 'search')).code).toBe(1);
  });
});

describe('postern requests list', () => {
  it('shows a table for people and whole rows for programs', async () => {
    const id = await insertRow(database, new Date('2031-01-01T00:00:01Z'), {
      prompt_tokens: 7,
      completion_tokens: 9,
      duration_ms: 80.6,
    });
    const { stdout } = await cli('requests', 'list', '--limit', '5');
    expect(stdout.split('\n')[1]).toMatch(
      new RegExp(
        `^2031-01-01T00:00:01Z +200 +${KEY} +gpt-4o +7\\+9 +81 +POST /v1/chat/completions +default +${id}$`,
      ),
    );
    const programs = JSON.parse((await cli('requests', 'list', '--json')).stdout) as { data: object[] };
    expect(programs.data).toMatchObject([{ id, prompt_tokens: 7, request_bytes: 10, user_agent: null }]);
  });

  it('lets nothing from the wire steer the terminal', async () => {
    await insertRow(database, new Date('2031-01-02T00:00:01Z'), { model: '\u001b]0;owned\u0007\u202egpt' });
    const { stdout } = await cli('requests', 'list', '--from', '2031-01-02T00:00:00Z');
    expect(stdout).toContain('?]0;owned??gpt');
    expect(stdout).not.toContain('\u001b');
  });

  it('lists failed calls, and slow ones', async () => {
    const at = new Date('2031-01-03T00:00:01Z');
    await insertRow(database, at, { model: 'fine' });
    await insertRow(database, at, { model: 'broken', outcome: 'truncated', duration_ms: 5_000 });
    await insertRow(database, at, {
      model: 'limited',
      status: 429,
      tags: { env: 'prod' },
      session_id: 's-1',
    });
    await insertRow(database, at, { model: 'faulty', status: 502, provider_request_id: 'req_9' });
    const models = async (...filter: string[]) => {
      const { stdout } = await cli('requests', 'list', '--from', '2031-01-03', ...filter, '--json');
      return (JSON.parse(stdout) as { data: { model: string }[] }).data.map(({ model }) => model).sort();
    };
    expect(await models('--failed')).toEqual(['broken', 'faulty', 'limited']);
    expect(await models('--status', '4xx,5xx')).toEqual(['faulty', 'limited']);
    expect(await models('--tag', 'env=prod')).toEqual(['limited']);
    expect(await models('--session', 's-1')).toEqual(['limited']);
    expect(await models('--provider-request-id', 'req_9')).toEqual(['faulty']);
    expect(await models('--min-duration-ms', '5000')).toEqual(['broken']);
    expect(await models()).toHaveLength(4);
    expect((await cli('requests', 'list', '--min-duration-ms', '5s')).stderr).toBe(
      'error: --min-duration-ms must be a number of milliseconds\n',
    );
  });

  it('finds what a text names, and says how far the log was searched', async () => {
    const id = await insertRow(database, new Date(), { provider_request_id: 'req_find', end_user: 'jane' });
    const { stdout } = await cli('find', 'req_find');
    expect(stdout).toMatch(new RegExp(`^KIND +NAME +LAST CALL +ID\nrequest +req_find +[-\\d :]+ +${id}\n$`));
    expect(JSON.parse((await cli('find', 'jane', '--json')).stdout)).toMatchObject({
      data: [{ kind: 'end_user', name: 'jane' }],
    });
    expect((await cli('find', 'nobody')).stdout).toBe('No matches found.\n');
    for (const prefix of ['ptn_', 'ptr_', 'ptd_']) {
      const whole = await cli('find', `${prefix}${'a'.repeat(38)}`);
      expect(whole).toMatchObject({ code: 1, stdout: '' });
      expect(whole.stderr).toContain('"keys find" reads a key from standard input');
      expect(whole.stderr).not.toContain('aaaa');
    }
  });

  it('filters, and rejects what it cannot', async () => {
    expect((await cli('requests', 'list', '--team', 'search')).stdout).toBe('No calls found.\n');
    const { code, stderr } = await cli('requests', 'list', '--status', '9999', '--limit', '0');
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: --status must be a status such as 429/m);
    expect(stderr).toMatch(/^error: --limit must be an integer from 1 to 500/m);
  });
});
