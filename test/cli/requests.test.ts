import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createDays, insertRow } from '../request-log/rows.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { runBuilt } from '../support/process.js';
import { runHere } from './run-here.js';

const CLI = resolve(__dirname, '../../dist/src/cli/start.js');

let database: TestDatabase;
let folder: string;
const cli = (...args: string[]) => runHere(args, { DATABASE_URL: database.url });
const start = (...args: string[]) =>
  runBuilt('cli/start', args, { cwd: folder, env: { DATABASE_URL: database.url } });

beforeAll(async () => {
  database = await createDatabase();
  await createDays(database, Date.now());
  folder = await mkdtemp(join(tmpdir(), 'postern-cli-'));
});
afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true });
});

describe('postern requests tail', () => {
  it('follows the log as people read it, and as programs do', async () => {
    const first = await insertRow(database, new Date('2031-01-01T00:00:01Z'));
    const people = start('requests', 'tail');
    await people.until(new RegExp(`^STARTED .*ID$\\n2031-01-01T00:00:01Z .*${first}$`, 'm'));
    const programs = start('requests', 'tail', '--json', '--lines', '0', '--status', '5xx');
    const ended: string[] = [];
    // Rows from before its start are not its affair, so that it is given new ones until it has started.
    await eventually(async () => {
      const startedAt = new Date(Date.UTC(2031, 0, 1, 0, 0, 2 + ended.length));
      ended.push(await insertRow(database, startedAt, { status: 502 }));
      return programs.stdout.includes('\n');
    });
    const [line] = programs.stdout.split('\n');
    expect(JSON.parse(line!)).toMatchObject({ status: 502, outcome: 'completed' });
    expect(ended).toContain((JSON.parse(line!) as { id: string }).id);
    const last = await insertRow(database, new Date('2030-12-31T00:00:00Z'));
    await people.until(new RegExp(`^2030-12-31T00:00:00Z +200 +.* ${last}$`, 'm'));
    for (const id of ended) await people.until(new RegExp(`${id}$`, 'm'));
    expect(people.stdout.split(last)).toHaveLength(2);
    for (const each of [people, programs]) each.signal('SIGINT');
    await Promise.all([people.ended, programs.ended]);
    // Both outlast a Postgres that is slow for a moment.
    expect((people.stderr + programs.stderr).replace(/^.* Waiting for it\.\n/gm, '')).toBe('');
  });
});

describe('postern requests list', () => {
  it('has the reason of failed calls beside their result, if there are any', async () => {
    const quota = { status: 429, provider_error_type: 'tokens', provider_error_code: 'insufficient_quota' };
    await insertRow(database, new Date('2031-02-01T00:00:01Z'), quota);
    const refused = { status: 502, error_code: 'upstream_unreachable', error_cause: 'ECONNREFUSED' };
    await insertRow(database, new Date('2031-02-01T00:00:02Z'), refused);
    await insertRow(database, new Date('2031-02-02T00:00:01Z'));
    const ofDay = async (day: string, until: string) => {
      const list = start('requests', 'list', '--from', day, '--to', until);
      await list.ended;
      return list.stdout.split('\n');
    };
    const failed = await ofDay('2031-02-01', '2031-02-02');
    expect(failed[0]).toMatch(/^STARTED +RESULT +REASON +KEY /);
    expect(failed[1]).toMatch(/Z +502 +ECONNREFUSED /);
    expect(failed[2]).toMatch(/Z +429 +insufficient_quota /);
    expect((await ofDay('2031-02-02', '2031-02-03'))[0]).toMatch(/^STARTED +RESULT +KEY /);
  });
});

describe('postern requests tail over HTTP', () => {
  it('waits for an unavailable gateway, and reports it once', async () => {
    const row = {
      id: 'x',
      key_id: 'k',
      started_at: '2031-01-01T00:00:01.000Z',
      recorded_at: '2031-01-01T00:00:01.000Z',
    };
    let polls = 0;
    const server = createServer((req, res) => {
      res.setHeader('content-type', 'application/json');
      const isRecorded = req.url!.startsWith('/admin/v1/requests/recorded');
      if (isRecorded) polls++;
      const isAway = isRecorded && polls > 1 && polls < 5;
      if (isAway)
        res
          .writeHead(503)
          .end('{"error":{"message":"Postgres is unavailable.","code":"database_unavailable","details":[]}}');
      else
        res.end(
          JSON.stringify({
            data: isRecorded && polls === 5 ? [row] : [],
            recorded_until: row.recorded_at,
            next_cursor: null,
          }),
        );
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    const env = { POSTERN_URL: `http://127.0.0.1:${port}`, POSTERN_ADMIN_TOKEN: 'x' };
    const tail = runBuilt('cli/start', ['requests', 'tail', '--json'], { cwd: folder, env });
    await tail.until(/^\{"id":"x"/m);
    tail.signal('SIGINT');
    await tail.ended;
    server.close();
    expect(tail.stderr).toBe('Postgres is unavailable. Waiting for it.\n');
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

  it('ends well when its reader has enough, and badly for what it does not know', async () => {
    await database.query(
      `INSERT INTO request_log (started_at, id, team_id, key_id, provider, method, path, streamed, outcome)
       SELECT now(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'p', 'POST', repeat('p', 1000), false, 'completed'
       FROM generate_series(1, 5000)`,
    );
    const command = spawn(process.execPath, [CLI, 'requests', 'export'], {
      cwd: folder,
      env: { PATH: process.env.PATH, DATABASE_URL: database.url },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let complaint = '';
    command.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
    command.stdout.once('data', () => command.stdout.destroy());
    const [ended] = (await once(command, 'close')) as [number | null];
    expect([ended, complaint]).toEqual([0, '']);
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
