import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import pg from 'pg';
import { AccountedLoad, type LoggedCall } from '../support/accounted-load.js';
import { eventually } from '../support/eventually.js';
import { drained } from '../support/kill-rounds.js';
import { itNeeding } from '../support/needing.js';
import { GatewayProcess } from '../support/process.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Workplace } from '../support/workplace.js';

/**
 * Folders of older checkouts, each with its build, divided by commas. docs/guides/backup-and-upgrade.md says how they are
 * made.
 */
const FROM = (process.env.UPGRADE_FROM ?? '').split(',').filter(Boolean);
const CLIENTS = 12;
const WITHIN_MS = 300_000;
const SECRET = 'sk-stored-0123456789';
const USAGE = '{"usage":{"prompt_tokens":1000,"completion_tokens":100}}';
/** Of USAGE, at the prices that this test sets. */
const COST_NANO_USD = 1_000n * 250n + 100n * 2_000n;
const PAID_CALLS = 7;

interface Sent {
  status: number;
  text: string;
  error: string | null;
  replayed: boolean;
}

interface Limit {
  resource: string;
  period: string;
  used: string;
  left: string;
}

async function send(
  url: string,
  key: string,
  path: string,
  headers = {},
  body = '{"model":"m"}',
): Promise<Sent> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body,
  });
  return {
    status: response.status,
    text: await response.text(),
    error: response.headers.get('x-gateway-error'),
    replayed: response.headers.get('idempotent-replayed') === 'true',
  };
}

/** An older gateway with its data folder and its embedded Postgres, and then this one on the same folder. */
class Upgrade {
  readonly keys: Record<string, { id: string; key: string }> = {};
  private gateway!: GatewayProcess;
  url = '';

  private constructor(
    readonly workplace: Workplace,
    readonly load: AccountedLoad,
    readonly provider: RawProvider,
  ) {}

  static async start(root: string): Promise<Upgrade> {
    const provider = await RawProvider.start(async ({ body, socket }) => {
      await body;
      socket.write(answer('200 OK', ['Content-Type: application/json'], USAGE));
    });
    const upgrade = new Upgrade(await Workplace.make(), await AccountedLoad.start(), provider);
    await upgrade.open((cwd, env) => GatewayProcess.ofCheckout(root, cwd, env));
    return upgrade;
  }

  async startThis(): Promise<void> {
    await this.open((cwd, env) => GatewayProcess.spawn(cwd, env));
  }

  private async open(start: (cwd: string, env: Record<string, string>) => GatewayProcess): Promise<void> {
    const { folder, dataDir } = this.workplace;
    // As `npm start` without a DATABASE_URL, an ADMIN_TOKEN or a MASTER_KEY: all are in the data folder.
    this.gateway = start(folder, { DATA_DIR: dataDir, PROVIDER_URL: this.load.provider.url });
    this.url = await this.gateway.ready();
    await eventually(async () => (await fetch(`${this.url}/health/ready`)).ok, WITHIN_MS);
  }

  kill = () => this.gateway.process.kill();
  stop = () => this.gateway.stop();

  async admin<T = { id: string }>(method: string, path: string, body?: object): Promise<T> {
    const token = (await readFile(join(this.workplace.dataDir, 'secrets', 'admin-token'), 'utf8')).trim();
    const response = await fetch(`${this.url}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as T;
  }

  async issue(name: string, more: object = {}): Promise<string> {
    const made = await this.admin<{ id: string; key: string }>('POST', '/keys', {
      team: 'search',
      name,
      ...more,
    });
    this.keys[name] = made;
    return made.key;
  }

  key = (name: string) => this.keys[name]!.key;

  /** A connection to the embedded Postgres, as its files name it. */
  async connect(): Promise<pg.Client> {
    const cluster = await this.workplace.cluster();
    const port = (await readFile(join(cluster, 'postmaster.pid'), 'utf8')).split('\n')[3]!;
    const password = (await readFile(join(cluster, '..', 'password'), 'utf8')).trim();
    const client = new pg.Client({
      host: '127.0.0.1',
      port: Number(port),
      user: 'postern',
      database: 'postern',
      password,
    });
    await client.connect();
    return client;
  }

  async query<T extends object>(sql: string): Promise<T[]> {
    const client = await this.connect();
    try {
      return (await client.query<T>(sql)).rows;
    } finally {
      await client.end();
    }
  }

  /** Rows of the calls of the load. */
  rows(): Promise<LoggedCall[]> {
    return this.query<LoggedCall>(
      `SELECT idempotency_key, outcome, status FROM request_log WHERE idempotency_key LIKE 'call-%'`,
    );
  }

  async close(): Promise<void> {
    await this.load.close();
    await this.workplace.remove();
    await this.provider.stop();
  }
}

/** What the older version knows is asked of its API, so that one test is for all of them. */
async function fill(upgrade: Upgrade): Promise<{ hasBudgets: boolean }> {
  const { url } = upgrade;
  await upgrade.admin('POST', '/teams', { name: 'search' });
  await upgrade.admin('POST', '/providers', { name: 'stored', url: upgrade.provider.url, secret: SECRET });
  const keys = ['load', 'replays', 'rotated', 'revoked', 'disabled', 'limited'];
  for (const name of keys) await upgrade.issue(name, name === 'replays' ? { idempotency: 'replay' } : {});
  await upgrade.admin('PATCH', `/keys/${upgrade.keys.disabled!.id}`, { disabled: true });
  await upgrade.admin('POST', `/keys/${upgrade.keys.revoked!.id}/revoke`, {});
  const { key } = await upgrade.admin<{ key: string }>('POST', `/keys/${upgrade.keys.rotated!.id}/rotate`, {
    grace_seconds: 86_400,
  });
  upgrade.keys.current = { id: upgrade.keys.rotated!.id, key };
  const once = await send(url, upgrade.key('replays'), '/p/stored/v1/chat/completions', {
    'idempotency-key': 'order-4711',
  });
  expect(once).toEqual({ status: 200, text: USAGE, error: null, replayed: false });

  const hasBudgets = await isThere(upgrade, '/limits');
  if (!hasBudgets) return { hasBudgets };
  await upgrade.admin('POST', '/prices', { catalog: 'stored', model: 'm', input: '0.25', output: '2' });
  const id = upgrade.keys.limited!.id;
  await upgrade.admin('PATCH', `/keys/${id}`, { budgets: [{ usd: '10', period: 'total' }] });
  for (let i = 0; i < PAID_CALLS; i++)
    expect((await send(url, upgrade.key('limited'), '/p/stored/v1/chat/completions')).status).toBe(200);
  return { hasBudgets };
}

const isThere = (upgrade: Upgrade, path: string) =>
  upgrade.admin('GET', path).then(
    () => true,
    (error: Error) => {
      if (error.message.includes(': 404 ')) return false;
      throw error;
    },
  );

async function budgetOf(upgrade: Upgrade): Promise<Limit> {
  const { data } = await upgrade.admin<{ data: Limit[] }>('GET', `/limits?key=${upgrade.keys.limited!.id}`);
  return data.find(({ resource, period }) => resource === 'usd' && period === 'total')!;
}

const inUsd = (nano: bigint) => Number(nano) / 1e9;

/** A crash of the machine while Postgres does not take rows: they are in the journal alone. */
async function crash(upgrade: Upgrade): Promise<number> {
  const client = await upgrade.connect();
  upgrade.load.run(upgrade.url, upgrade.key('load'), CLIENTS);
  await eventually(() => upgrade.load.answered.size > 200, WITHIN_MS);
  await client.query('BEGIN; LOCK TABLE request_log IN ACCESS EXCLUSIVE MODE');
  const before = upgrade.load.answered.size;
  await eventually(() => upgrade.load.answered.size > before + 300, WITHIN_MS);
  await upgrade.kill();
  await upgrade.load.stop({ gone: true });
  const { rows } = await client.query<{ count: number }>(
    `SELECT count(*)::int FROM request_log WHERE idempotency_key LIKE 'call-%'`,
  );
  await client.query('ROLLBACK');
  await client.end();
  const pid = await upgrade.workplace.postgresPid();
  process.kill(pid!, 'SIGKILL');
  await eventually(async () => (await upgrade.workplace.postgresPid()) === null);
  return upgrade.load.seen.size - rows[0]!.count;
}

const open: Upgrade[] = [];
afterAll(async () => {
  for (const upgrade of open) await upgrade.close();
});

async function upgradeFrom(root: string): Promise<void> {
  const upgrade = await Upgrade.start(root);
  open.push(upgrade);
  const { load, provider, workplace } = upgrade;
  const { hasBudgets } = await fill(upgrade);
  const count = (table: string) =>
    upgrade.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${table}`).then(([row]) => row!.n);
  const kept = ['team', 'gateway_key', 'gateway_key_secret', 'provider', 'audit_log'];
  const before = await Promise.all(kept.map(count));
  const backlog = await crash(upgrade);
  // Otherwise this test shows less than it says.
  expect(backlog).toBeGreaterThan(200);

  await upgrade.startThis();
  await drained(workplace);
  expect(load.judge(await upgrade.rows())).toEqual([]);
  expect(await Promise.all(kept.map(count))).toEqual(before);

  const atProvider = provider.requests.length;
  const { url } = upgrade;
  const path = '/p/stored/v1/chat/completions';
  const again = await send(url, upgrade.key('replays'), path, { 'idempotency-key': 'order-4711' });
  expect(again).toEqual({ status: 200, text: USAGE, error: null, replayed: true });
  expect(provider.requests).toHaveLength(atProvider);
  for (const name of ['rotated', 'current'])
    expect(await send(url, upgrade.key(name), path)).toMatchObject({ status: 200, text: USAGE });
  for (const name of ['revoked', 'disabled'])
    expect((await send(url, upgrade.key(name), path)).status).toBe(401);
  const secrets = provider.requests.map(
    ({ headers }) => headers.find(([name]) => /^authorization$/i.test(name))![1],
  );
  expect(new Set(secrets)).toEqual(new Set([`Bearer ${SECRET}`]));

  if (hasBudgets) {
    const used = () => budgetOf(upgrade).then((limit) => Number(limit.used));
    await eventually(async () => (await used()) === inUsd(BigInt(PAID_CALLS) * COST_NANO_USD), WITHIN_MS);
    expect((await send(url, upgrade.key('limited'), path)).status).toBe(200);
    await eventually(async () => {
      const [row] = await upgrade.query<{ sum: string }>(
        `SELECT sum(charge_usd)::text AS sum FROM request_log WHERE key_id = '${upgrade.keys.limited!.id}'`,
      );
      return (
        Number(row!.sum) === inUsd(BigInt(PAID_CALLS + 1) * COST_NANO_USD) &&
        Number(row!.sum) === (await used())
      );
    }, WITHIN_MS);
  }

  const upgraded = load.answered.size;
  load.run(url, upgrade.key('load'), CLIENTS);
  await eventually(() => load.answered.size > upgraded + 200, WITHIN_MS);
  await load.stop();
  await eventually(async () => (await upgrade.rows()).length >= load.seen.size, WITHIN_MS);
  expect(load.judge(await upgrade.rows())).toEqual([]);
  process.stdout.write(
    `${basename(root)}: ${load.seen.size} calls of the load, ${backlog} of them only in the journal when it was killed; ` +
      `${load.answered.size} answered, ${load.broken.size} broken; all rows kept` +
      `${hasBudgets ? `; the budget has used ${(await budgetOf(upgrade)).used} USD, as the log` : ''}\n`,
  );
  expect(await upgrade.stop()).toEqual({ code: 0, signal: null });
}

if (FROM.length === 0)
  itNeeding('not set: UPGRADE_FROM', 'upgrades data folders of older checkouts', () => Promise.resolve());
else
  it.each(FROM)(
    'keeps rows, keys, secrets, budgets and stored responses of %s, which died with a full journal',
    upgradeFrom,
    1_800_000,
  );
