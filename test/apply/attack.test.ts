import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { runHere } from '../cli/run-here.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { ApplyRun } from './apply-run.js';

let run: ApplyRun;
beforeAll(async () => {
  run = await ApplyRun.start();
});
afterAll(() => run.stop());

/** Waits until a statement waits for this lock. */
const isWaiting = (table: string, mode: string) =>
  eventually(async () => {
    // Databases of one template have tables of the same numbers.
    const found = await run.postern.database.query(
      `SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
       WHERE d.datname = current_database() AND relation = $1::regclass AND mode = $2 AND NOT granted`,
      [table, mode],
    );
    return found.length === 1;
  });

const keys = (team: string, count: number) =>
  `teams: [{ name: ${team} }]\nkeys:\n${Array.from({ length: count }, (_, i) => `  - { team: ${team}, name: k${i} }\n`).join('')}`;

describe('postern apply', () => {
  it('rejects a file whose aliases stand for billions of objects', async () => {
    const levels = Array.from(
      { length: 9 },
      (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`).join(', ')}]\n`,
    );
    const { code, stderr } = await run.apply(
      `a0: &a0 [x, x, x, x, x, x, x, x, x]\n${levels.join('')}teams: *a9\n`,
    );
    expect(code).toBe(1);
    expect(stderr).toBe('error: postern.yaml:1:1: has too many aliases; write out what they stand for\n');
  });

  it.each([
    ['teams: &a [*a]\n', '1:12'],
    ['teams:\n  - &team\n    name: search\n    limits: { requests_per_minute: *team }\n', '4:36'],
    ['teams: &a [&b { name: x, models: [*a] }]\n', '1:35'],
    ['teams: [&a { <<: *a, name: x }]\n', '1:18'],
  ])('rejects an alias of what contains it: %j', async (text, place) => {
    const { code, stdout, stderr } = await run.apply(text);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(
      new RegExp(`^error: postern\\.yaml:${place}: the alias \\*\\w+ stands for what contains it; write out`),
    );
  });

  it('reads the secret of an object that an alias repeats', async () => {
    const text =
      'sinks:\n  - &sink { name: one, kind: http, url: "https://rows.example.com/", secret: { env: S } }\n  - *sink\n';
    const { stderr } = await run.apply(text, [], { S: 'canary' });
    expect(stderr).toMatch(
      /^error: postern\.yaml:\d+:\d+: sinks\[1\]\.name: this sink is listed more than once/,
    );
    expect(stderr).not.toContain('must not be in the file');
  });

  it('removes only a file for secrets that it has made, and leaves what is no file as it is', async () => {
    expect((await run.apply(keys('files', 1), ['--secrets-out', 'new.ndjson'])).code).toBe(0);
    const path = join(run.folder, 'empty.ndjson');
    await run.write('empty.ndjson', '');
    const unchanged = { code: 0, stderr: '', stdout: 'No changes.\n' };
    expect(await run.apply(keys('files', 1), ['--secrets-out', 'empty.ndjson'])).toEqual(unchanged);
    expect(existsSync(path)).toBe(true);
    expect(await run.apply(keys('files', 1), ['--secrets-out', 'other.ndjson'])).toEqual(unchanged);
    expect(existsSync(join(run.folder, 'other.ndjson'))).toBe(false);

    const pipe = join(run.folder, 'pipe');
    expect(spawnSync('mkfifo', ['-m', '644', pipe]).status).toBe(0);
    // Opened for reading too, so that nobody waits for a reader.
    const reader = await open(pipe, 'r+');
    expect(await run.apply(keys('files', 2), ['--secrets-out', 'pipe'])).toMatchObject({
      code: 0,
      stderr: '',
    });
    const { buffer, bytesRead } = await reader.read();
    await reader.close();
    expect(buffer.toString('utf8', 0, bytesRead)).toContain('"name":"files/k1"');
    expect(statSync(pipe).mode & 0o777).toBe(0o644);
  });

  it('names the whole path of a file that cannot be read', async () => {
    const env = { POSTERN_URL: run.postern.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
    expect(await runHere(['apply', '-f', 'nothing.yaml'], env, run.folder)).toMatchObject({
      code: 1,
      stderr: `error: ${join(run.folder, 'nothing.yaml')} cannot be read (ENOENT); check its path and permissions\n`,
    });
  });

  it('changes nothing if the file for the secrets cannot be written', async () => {
    const { code, stderr } = await run.apply(keys('nowhere', 1), ['--secrets-out', 'no-folder/new.ndjson']);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`${run.folder}/no-folder/new.ndjson cannot be written (ENOENT)`),
    ]);
    expect((await run.apply(keys('nowhere', 1), ['--secrets-out', '.'])).stderr).toContain('(EISDIR)');
    expect((await run.plan('teams: [{ name: nowhere }]\n')).length).toBe(1);
  });

  it('waits for changes of sinks that are under way, and lets none begin meanwhile', async () => {
    const client = new pg.Client(run.postern.database.url);
    await client.connect();
    await client.query('BEGIN; LOCK TABLE sink IN ROW EXCLUSIVE MODE');
    const applied = run.apply('teams: [{ name: waiting }]\n');
    await isWaiting('sink', 'ExclusiveLock');
    await client.query('COMMIT');
    await client.end();
    expect((await applied).code).toBe(0);
  });

  it('waits for changes of webhooks and lets none begin meanwhile, but keeps no event waiting', async () => {
    const { id } = await run.postern.admin<{ id: string }>('POST', '/webhooks', {
      url: 'http://127.0.0.1:9/',
      format: 'standard',
      events: ['key.expiring'],
    });
    const client = new pg.Client(run.postern.database.url);
    await client.connect();
    await client.query('BEGIN; LOCK TABLE webhook IN ROW EXCLUSIVE MODE');
    const applied = run.apply('teams: [{ name: hooks }]\n');
    await isWaiting('webhook', 'ShareRowExclusiveLock');
    const changed = run.postern.admin('PATCH', `/webhooks/${id}`, { events: ['price.missing'] });
    await isWaiting('webhook', 'RowExclusiveLock');
    await run.postern.database.query(`SELECT webhook_emit('key.expiring', '{}')`);
    // The change that waits for apply has not locked its row, for which apply would wait.
    await client.query('SELECT FROM webhook WHERE id = $1 FOR NO KEY UPDATE NOWAIT', [id]);
    await client.query('COMMIT');
    await client.end();
    expect((await applied).code).toBe(0);
    expect(await changed).toMatchObject({ events: ['price.missing'] });
  });
});
