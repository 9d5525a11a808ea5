import type { Server, Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import { insertRow } from '../request-log/rows.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { RawClient, request } from '../support/raw-client.js';
import { call, fieldsOf } from './call.js';

let postern: TestGateway;
/** 36 MB of export: more than any socket buffers. */
const ROWS = 12_000;

beforeAll(async () => {
  postern = await startTestGateway();
  await postern.database.query(
    `INSERT INTO request_log (started_at, id, team_id, key_id, provider, method, path, model, user_agent, streamed, outcome)
     SELECT now(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'p', 'POST', repeat('p', 1000), repeat('m', 1000),
            repeat('u', 1000), false, 'completed' FROM generate_series(1, $1)`,
    [ROWS],
  );
});
afterAll(() => postern.stop());

const HEADERS = { authorization: `Bearer ${ADMIN_TOKEN}`, 'accept-encoding': 'identity' };
const open = (query = '') => fetch(`${postern.url}/admin/v1/requests/export${query}`, { headers: HEADERS });

const sessions = () =>
  postern.database.query<{ pid: number; state: string; wait: string | null }>(
    "SELECT pid, state, wait_event_type AS wait FROM pg_stat_activity WHERE application_name = 'postern-export' AND datname = current_database()",
  );
const gone = () => eventually(async () => (await sessions()).length === 0);

describe('/admin/v1/requests/export', () => {
  // The client has its last bytes before the session is closed.
  afterEach(gone);

  it('is one text of all rows, named, not to be stored, with where to go on', async () => {
    const answer = await open('?limit=3');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8');
    expect(answer.headers.get('content-disposition')).toMatch(
      /^attachment; filename="requests-[\w-]+\.ndjson"$/,
    );
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const lines = (await answer.text()).split('\n');
    expect(lines).toHaveLength(4);
    const until = answer.headers.get('x-recorded-until')!;
    const id = await insertRow(postern.database, new Date());
    // Until the clock has left the millisecond of the row.
    const next = await eventually(
      async () => (await (await open(`?recorded_after=${until}`)).text()) || null,
    );
    expect(JSON.parse(next)).toMatchObject({ id });
    const csv = await open(`?format=csv&recorded_after=${until}`);
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    expect((await csv.text()).split('\n')).toEqual([
      expect.stringMatching(/^id,started_at,/),
      expect.stringContaining(id),
      '',
    ]);
    await postern.database.query('DELETE FROM request_log WHERE id = $1', [id]);
  });

  it('needs the token, answers HEAD without rows, and rejects what it does not know', async () => {
    expect((await fetch(`${postern.url}/admin/v1/requests/export`)).status).toBe(401);
    const head = await fetch(`${postern.url}/admin/v1/requests/export`, { method: 'HEAD', headers: HEADERS });
    expect([head.status, await head.text()]).toEqual([200, '']);
    await gone();
    for (const [query, field] of [
      ['format=xml', 'format'],
      ['limit=0', 'limit'],
      ['limit=1e9', 'limit'],
      ['cursor=x', 'cursor'],
      ['recorded_after=now', 'recorded_after'],
      ['from=2031-01-02T00:00:00Z&to=2031-01-01T23:59:59Z', 'from'],
    ]) {
      const answer = await call(postern, 'GET', `/requests/export?${query}`);
      expect([answer.status, fieldsOf(answer)]).toEqual([400, [field]]);
    }
    expect((await call(postern, 'GET', '/requests/export?team=nobody')).status).toBe(404);
  });

  it('is compressed for a client that accepts it, and says that it depends on that', async () => {
    const plain = await open('?limit=200');
    expect([plain.headers.get('content-encoding'), plain.headers.get('vary')]).toEqual([
      null,
      'accept-encoding',
    ]);
    const whole = Buffer.from(await plain.arrayBuffer());
    for (const accepted of ['gzip, deflate, br', '*', 'gzip;q=0.5, identity;q=0.1']) {
      const client = await RawClient.connect(postern.port);
      const headers = [`Authorization: Bearer ${ADMIN_TOKEN}`, `Accept-Encoding: ${accepted}`];
      client.send(request('GET /admin/v1/requests/export?limit=200', headers));
      const reply = await client.answer();
      client.destroy();
      expect([reply.status, reply.header('content-encoding'), reply.header('vary')]).toEqual([
        200,
        'gzip',
        'accept-encoding',
      ]);
      expect(reply.body.length).toBeLessThan(whole.length / 5);
      expect(gunzipSync(reply.body).equals(whole)).toBe(true);
    }
    for (const rejected of ['gzip;q=0', 'br', 'identity']) {
      const headers = { ...HEADERS, 'accept-encoding': rejected };
      const answer = await fetch(`${postern.url}/admin/v1/requests/export?limit=1`, { headers });
      expect(answer.headers.get('content-encoding')).toBeNull();
      await answer.text();
    }
    // A list is small.
    const list = await call(postern, 'GET', '/requests', undefined, { 'accept-encoding': 'gzip' });
    expect(list.headers.get('content-encoding')).toBeNull();
  });

  it('goes at the pace of its reader, with next to nothing in memory', async () => {
    const sockets: Socket[] = [];
    (postern.gateway.app.getHttpServer() as Server).on('connection', (socket: Socket) =>
      sockets.push(socket),
    );
    const client = await RawClient.connect(postern.port);
    const isOurs = (socket: Socket) => socket.remotePort === client.socket.localPort;
    client.send(request('GET /admin/v1/requests/export', [`Authorization: Bearer ${ADMIN_TOKEN}`]));
    await client.head();
    client.socket.pause();
    const socket = await eventually(() => sockets.find(isOurs));
    await eventually(() => socket.writableNeedDrain);
    // Others are served meanwhile; the export does not move.
    const { bytesWritten } = socket;
    for (let i = 0; i < 20; i++) expect((await call(postern, 'GET', '/requests?limit=1')).status).toBe(200);
    expect(socket.bytesWritten).toBe(bytesWritten);
    expect(socket.writableLength).toBeLessThan(4_000_000);
    expect(await sessions()).toMatchObject([{ state: 'idle in transaction' }]);
    client.socket.resume();
    client.destroy();
    await gone();
  });

  it('gives a slow reader every row', async () => {
    const decoder = new TextDecoder();
    let lines = 0;
    for await (const piece of (await open()).body as unknown as AsyncIterable<Uint8Array>) {
      lines += decoder.decode(piece, { stream: true }).split('\n').length - 1;
      await new Promise((turn) => setImmediate(turn));
    }
    expect(lines).toBe(ROWS);
    await gone();
  });

  it('that nobody reads leaves others room for theirs, and says who has too many', async () => {
    const tokens: string[] = [];
    for (const name of ['one', 'two', 'three']) {
      const made = await postern.admin<{ token: string }>('POST', '/tokens', { name, role: 'viewer' });
      tokens.push(made.token);
    }
    const unread: RawClient[] = [];
    const openUnread = async (token: string) => {
      const client = await RawClient.connect(postern.port);
      unread.push(client);
      client.send(request('GET /admin/v1/requests/export', [`Authorization: Bearer ${token}`]));
      expect((await client.head()).status).toBe(200);
      client.socket.pause();
    };
    const asked = async (token: string) => {
      const answer = await fetch(`${postern.url}/admin/v1/requests/export?limit=1`, {
        headers: { authorization: `Bearer ${token}` },
      });
      return [answer.status, await answer.text()] as const;
    };
    const [one, two, three] = tokens as [string, string, string];
    for (const token of [one, one]) await openUnread(token);
    expect(await asked(one)).toEqual([429, expect.stringContaining('You have 2 exports running')]);
    expect((await asked(two))[0]).toBe(200);
    for (const token of [two, two]) await openUnread(token);
    expect(await asked(three)).toEqual([429, expect.stringContaining('4 exports are running')]);
    expect((await asked(ADMIN_TOKEN))[0]).toBe(200);
    for (const client of unread) client.destroy();
    await gone();
    expect((await asked(three))[0]).toBe(200);
  });

  it('that members of a team read slowly leave some to other teams, and one to viewers', async () => {
    const { ExportSlots } = await import('../../src/requests/export-slots.js');
    const slots = new ExportSlots();
    const take = (name: string, role: 'team' | 'viewer' | 'admin', scope: string[] | null = null) =>
      slots.take({ actor: { name, address: null }, role, scope });
    const ends = [take('a', 'team', ['one']), take('b', 'team', ['two', 'one'])];
    expect(() => take('c', 'team', ['one', 'three'])).toThrow('2 exports of your teams are running');
    ends.push(take('d', 'team', ['three']));
    expect(() => take('e', 'team', ['four'])).toThrow('3 exports of members are running');
    ends.push(take('f', 'viewer'));
    expect(() => take('g', 'viewer')).toThrow('4 exports are running');
    ends.push(take('h', 'admin'));
    for (const end of ends) end();
    take('c', 'team', ['one', 'three']);
  });

  it('closes its cursor when the reader leaves', async () => {
    const leaving = new AbortController();
    const answer = await fetch(`${postern.url}/admin/v1/requests/export`, {
      headers: HEADERS,
      signal: leaving.signal,
    });
    await answer.body!.getReader().read();
    expect(await sessions()).toHaveLength(1);
    leaving.abort();
    await gone();
  });

  it('ends a search nobody waits for any more', async () => {
    // The first step waits at a lock as it would in a long scan: nothing has been sent yet.
    const locking = new pg.Client({ connectionString: postern.database.url });
    await locking.connect();
    await locking.query('BEGIN; LOCK TABLE request_log IN ACCESS EXCLUSIVE MODE');
    const leaving = new AbortController();
    const asking = fetch(`${postern.url}/admin/v1/requests/export`, {
      headers: HEADERS,
      signal: leaving.signal,
    });
    await eventually(async () => (await sessions())[0]?.wait === 'Lock');
    leaving.abort();
    await expect(asking).rejects.toThrow();
    await gone();
    await locking.end();
  });

  it.each(['identity', 'gzip'])('breaks off visibly when Postgres does (%s)', async (coding) => {
    const headers = { ...HEADERS, 'accept-encoding': coding };
    const url = `${postern.url}/admin/v1/requests/export`;
    const answer = await fetch(url, { headers });
    const reader = answer.body!.getReader();
    await reader.read();
    const [session] = await sessions();
    await postern.database.query('SELECT pg_terminate_backend($1)', [session!.pid]);
    const toTheEnd = async () => {
      while (!(await reader.read()).done);
    };
    await expect(toTheEnd()).rejects.toThrow();
    await gone();
    const again = await open('?limit=1');
    expect([again.status, (await again.text()).split('\n')]).toEqual([200, [expect.any(String), '']]);
  });
});
