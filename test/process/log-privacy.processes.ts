import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import type { TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { filesHolding } from '../support/files-below.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, chunk, LAST_CHUNK, RawProvider, STREAM_HEAD } from '../support/raw-provider.js';
import { PostgresRelay } from '../support/postgres-relay.js';
import { Site } from '../support/site.js';
import { Workplace } from '../support/workplace.js';

/** A text that is nowhere else. */
const canary = (what: string) => `canary-${what}-${randomBytes(9).toString('hex')}`;

const PROMPT = canary('prompt');
const ANSWER = canary('answer');
const QUERY = canary('query');
const HEADER = canary('header');
const PROVIDER_KEY = canary('provider-key');
const ADMIN_TOKEN = canary('admin-token');
const MASTER_KEY = randomBytes(32).toString('base64');

let site: Site;
let database: TestDatabase;
let workplace: Workplace;
let provider: RawProvider;
let relay: PostgresRelay;

beforeEach(async () => {
  site = await Site.make({
    script: async ({ head, body, socket }) => {
      const sent = await body.catch(() => null);
      if (sent === null) return;
      // The gateway itself, which tests its first provider.
      if (head.startsWith('GET /v1/models ')) return void socket.write(answer('404 Not Found', []));
      expect(sent.bytes.toString()).toContain(PROMPT);
      expect(head).toContain(PROVIDER_KEY);
      if (head.includes('x-break')) return void socket.destroy();
      if (!head.includes('x-stream')) {
        return void socket.write(answer('200 OK', [`x-secret: ${ANSWER}`], JSON.stringify({ text: ANSWER })));
      }
      socket.write(STREAM_HEAD);
      socket.write(chunk(`data: ${JSON.stringify({ text: ANSWER })}\n\n`));
      if (!head.includes('x-hang')) socket.write(LAST_CHUNK);
    },
  });
  ({ database, workplace, provider } = site);
  relay = await PostgresRelay.to(database.url);
});
afterEach(async () => {
  await site.remove();
  await relay.close();
});

/** Every table, each row as text, whatever its columns. */
async function dump(): Promise<string> {
  const tables = await database.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
     WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
  );
  let text = '';
  for (const { name } of tables) {
    for (const { row } of await database.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`)) {
      text += `${name} ${row}\n`;
    }
  }
  return text;
}

it('keeps no prompt, response, query, key or secret in a row, a file or a line of its log', async () => {
  const settings = {
    DATABASE_URL: relay.url,
    PROVIDER_URL: provider.url,
    PROVIDER_KEY,
    ADMIN_TOKEN,
    MASTER_KEY,
    LOG_LEVEL: 'trace',
  };
  const gateway = workplace.gateway(settings);
  const key = await gateway.firstKey();
  const url = await gateway.ready();
  const secrets = [PROMPT, ANSWER, QUERY, HEADER, key, key.slice(12), PROVIDER_KEY, ADMIN_TOKEN, MASTER_KEY];

  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: PROMPT }] });
  const send = async (headers: string[], path = '/v1/chat/completions') => {
    const client = await RawClient.connect(Number(new URL(url).port));
    client.send(
      request(
        `POST ${path}?q=${QUERY}`,
        [`Authorization: Bearer ${key}`, `x-canary: ${HEADER}`, ...headers],
        body,
      ),
    );
    return client;
  };
  const ended = async (headers: string[], path?: string) => {
    const client = await send(headers, path);
    const reply = await client.answer().catch(() => null);
    client.destroy();
    return reply;
  };
  expect((await ended([]))?.status).toBe(200);
  expect((await ended(['x-stream: 1']))?.body.toString()).toContain(ANSWER);
  expect((await ended(['x-break: 1']))?.status).toBe(502);
  // A key in each header that has a column.
  for (const name of ['User-Agent', 'Idempotency-Key', 'X-Stainless-Retry-Count', 'X-Forwarded-For']) {
    expect((await ended([`${name}: ${key}`]))?.status).toBe(200);
  }
  expect((await ended([], `/v1/${key}`))?.status).toBe(400);
  await eventually(async () => {
    const [row] = await database.query<{ n: number }>('SELECT count(*)::int AS n FROM request_log');
    return row!.n === 7;
  });
  const rows = await dump();
  expect(rows).toContain('/v1/chat/completions');
  for (const secret of secrets) expect(rows).not.toContain(secret);

  // What is still in the journal: rows that Postgres cannot take, and calls under way.
  relay.set('postern-log', 'cut');
  expect((await ended([`User-Agent: ${key}`]))?.status).toBe(200);
  const hanging = await send(['x-stream: 1', 'x-hang: 1']);
  await hanging.head();
  await gateway.process.kill();
  hanging.destroy();
  expect(await readdir(`${workplace.dataDir}/journal`)).toContainEqual(
    expect.stringMatching(/^[0-9a-f-]{36}$/),
  );
  expect(await filesHolding(workplace.dataDir, ['/v1/chat/completions'])).not.toEqual([]);
  expect(await filesHolding(workplace.dataDir, secrets)).toEqual([]);

  // The one line that shows the first key is the start's own.
  const printed = (gateway.process.stdout + gateway.process.stderr).replace(/^.*shown only once: .*$/m, '');
  const said = printed.replace(new RegExp(`Bearer ${key}`, 'g'), '');
  for (const secret of secrets) expect(said).not.toContain(secret);
});

it('keeps the ID of a job at its provider only encrypted, until somebody asks for it by its path', async () => {
  const id = canary('job');
  provider.script = async ({ head, body, socket }) => {
    await body;
    const job = { id, object: 'batch', status: 'in_progress', metadata: { note: ANSWER } };
    const isKnown = head.startsWith('POST ') || head.includes(id);
    socket.write(
      answer(isKnown ? '200 OK' : '404 Not Found', ['Content-Type: application/json'], JSON.stringify(job)),
    );
  };
  const gateway = workplace.gateway({
    DATABASE_URL: database.url,
    PROVIDER_URL: provider.url,
    PROVIDER_KEY,
    ADMIN_TOKEN,
    MASTER_KEY,
    LOG_LEVEL: 'trace',
  });
  const url = await gateway.ready();
  const admin = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' };
  const made = await fetch(`${url}/admin/v1/keys`, {
    method: 'POST',
    headers: admin,
    body: JSON.stringify({ team: 'default', name: 'jobs', endpoints: 'all' }),
  });
  const { key } = (await made.json()) as { key: string };
  const created = await fetch(`${url}/v1/batches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{}',
  });
  expect(await created.text()).toContain(id);
  const jobs = async () => (await fetch(`${url}/admin/v1/jobs`, { headers: admin })).text();
  await eventually(async () => (await jobs()).includes('"batch"'));
  await database.query('UPDATE provider_job SET next_check_at = now()');
  await eventually(async () => (await jobs()).includes('"tries":1'));
  expect(provider.requests.filter(({ head }) => head.includes(`/v1/batches/${id}`))).toHaveLength(1);
  const metrics = await (await fetch(`${url}/metrics`, { headers: admin })).text();
  const rows = await dump();
  expect(rows).toContain('/v1/batches');
  const hidden = [id, Buffer.from(id).toString('hex'), Buffer.from(id).toString('base64').slice(4, -4)];
  for (const text of [await jobs(), metrics, rows, gateway.process.stdout + gateway.process.stderr])
    for (const secret of hidden) expect(text).not.toContain(secret);
  await gateway.process.kill();
  expect(await filesHolding(workplace.dataDir, hidden)).toEqual([]);
});
