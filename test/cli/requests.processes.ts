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

const CLI = resolve(__dirname, '../../dist/src/cli/start.js');

let database: TestDatabase;
let folder: string;
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
    expect(people.stderr + programs.stderr).toBe('');
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
  it('ends well when its reader has enough', async () => {
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
  });
});
