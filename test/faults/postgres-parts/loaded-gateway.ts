import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { sendTo, startUsageProvider } from '../../limits/limited-gateway.js';
import { eventually, timePasses } from '../../support/eventually.js';
import { ADMIN_TOKEN } from '../../support/gateway.js';
import type { GatewayProcess } from '../../support/process.js';
import type { RawProvider } from '../../support/raw-provider.js';
import { Workplace } from '../../support/workplace.js';

/** What a key has; `new`: a key that the gateway has not seen. */
export type Kind = 'plain' | 'budget' | 'rate' | 'concurrency' | 'replay' | 'cached';

const KEYS: Record<Kind, object> = {
  plain: {},
  budget: { budgets: [{ usd: '1000', period: 'month' }] },
  rate: { limits: { requests_per_minute: 30_000 } },
  concurrency: { limits: { concurrent_requests: 100 } },
  replay: { idempotency: 'replay' },
  cached: { cache: { ttl_seconds: 3_600 } },
};
/** Clients of each kind. The p99 of the plain ones is taken. */
const CLIENTS: Record<Kind, number> = { plain: 3, budget: 1, rate: 1, concurrency: 1, replay: 1, cached: 1 };
const PACE_MS = 15;

interface Call {
  kind: Kind;
  ms: number;
  status: number;
  code: string | null;
  id: string;
}

export const SECRETS = { ADMIN_TOKEN, MASTER_KEY: randomBytes(32).toString('base64') };

/** A gateway process, and clients with keys of each kind that call it. */
export class LoadedGateway {
  private running = false;
  private loops: Promise<void>[] = [];
  private calls: Call[] = [];
  private number = 0;
  private once = 0;

  private constructor(
    readonly url: string,
    readonly keys: Record<Kind, string>,
    private readonly workplace: Workplace,
    private readonly process: GatewayProcess,
    private readonly provider: RawProvider,
  ) {}

  /** @param keys those of another replica on the same database; absent: new ones */
  static async start(
    provider: RawProvider,
    variables: Record<string, string>,
    keys?: Record<Kind, string>,
  ): Promise<LoadedGateway> {
    const workplace = await Workplace.make();
    const env = { LOG_LEVEL: 'warn', PROVIDER_URL: provider.url, ...SECRETS, ...variables };
    const process = workplace.gateway(env);
    const url = await process.ready();
    const known = keys ?? ({} as Record<Kind, string>);
    const gateway = new LoadedGateway(url, known, workplace, process, provider);
    await gateway.healthy();
    if (keys === undefined) {
      await gateway.admin('POST', '/prices', { catalog: 'default', model: 'm', input: '1', output: '10' });
      for (const kind of Object.keys(KEYS) as Kind[])
        gateway.keys[kind] = (
          await gateway.admin<{ key: string }>('POST', '/keys', {
            team: 'default',
            name: kind,
            ...KEYS[kind],
          })
        ).key;
    }
    for (const kind of Object.keys(KEYS) as Kind[]) {
      const first = await gateway.call(kind);
      if (first.status !== 200) throw new Error(`${kind}: ${first.status} ${first.code}`);
    }
    return gateway;
  }

  /** What it has logged. */
  get log(): string {
    return this.process.process.stdout + this.process.process.stderr;
  }

  async admin<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(`${this.url}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** Waits until the readiness has nothing to report. */
  async healthy(): Promise<void> {
    await eventually(async () => {
      const response = await fetch(`${this.url}/health/ready`);
      return ((await response.json()) as { status: string }).status === 'ok';
    });
  }

  async stop(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
    await this.workplace.remove();
  }

  /** One call; a replayed one is sent twice. */
  async call(kind: Kind, key = this.keys[kind]): Promise<Call> {
    const number = kind === 'replay' ? this.once++ >> 1 : this.number++;
    const headers =
      kind === 'replay' ? { 'idempotency-key': `${new URL(this.url).port}-${number}` } : undefined;
    const body = {
      model: 'm',
      max_tokens: 100,
      messages: [],
      seed: kind === 'cached' ? number >> 1 : number,
    };
    const began = performance.now();
    const { status, code, id } = await sendTo(this.url, key, body, undefined, headers);
    return { kind, ms: performance.now() - began, status, code, id };
  }

  /** Keeps the clients calling until rest(). */
  run(clients = CLIENTS): void {
    this.running = true;
    this.calls = [];
    for (const [kind, count] of Object.entries(clients) as [Kind, number][])
      for (let i = 0; i < count; i++) this.loops.push(this.loop(kind));
  }

  /** Waits so long, and until a percentile of the calls with a plain key says something: a busy machine makes few. */
  async during(ms: number): Promise<void> {
    await timePasses(ms, 'the trouble');
    await eventually(() => this.calls.filter(({ kind }) => kind === 'plain').length >= 150);
  }

  /** Waits until every call has its response. @returns them */
  async rest(): Promise<Calls> {
    this.running = false;
    await Promise.all(this.loops.splice(0));
    return new Calls(this.calls);
  }

  private async loop(kind: Kind): Promise<void> {
    while (this.running) {
      this.calls.push(await this.call(kind));
      await timePasses(PACE_MS, 'the pace of a client');
    }
  }

  /** How often a call with the same Idempotency-Key reached the provider at most. */
  get mostArrivals(): number {
    const arrivals = new Map<string, number>();
    for (const { headers } of this.provider.requests) {
      const key = headers.find(([name]) => name.toLowerCase() === 'idempotency-key')?.[1];
      if (key !== undefined) arrivals.set(key, (arrivals.get(key) ?? 0) + 1);
    }
    return Math.max(0, ...arrivals.values());
  }
}

/** The calls of a time, and what came of them. */
export class Calls {
  constructor(readonly all: readonly Call[]) {}

  of(...kinds: Kind[]): Calls {
    return new Calls(this.all.filter(({ kind }) => kinds.includes(kind)));
  }

  get ids(): string[] {
    return this.all.filter(({ status }) => status === 200).map(({ id }) => id);
  }

  /** Percentile of the times, in whole milliseconds. */
  percentile(part: number): number {
    const sorted = this.all.map(({ ms }) => ms).sort((a, b) => a - b);
    return Math.round(sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)] ?? 0);
  }

  /** Statuses with their counts, as `200 x 17, 503 limits_unavailable x 1`. */
  get results(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { status, code } of this.all) {
      const name = code === null ? `${status}` : `${status} ${code}`;
      counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  }
}

export const startProvider = (): Promise<RawProvider> => startUsageProvider({ input: 100, output: 100 });

type Query = (sql: string, values?: unknown[]) => Promise<pg.QueryResultRow[]>;

/** Each call has one row, and the budgets are charged exactly what the rows say. @returns seconds until that was so */
export async function expectRows(query: Query, ids: readonly string[]): Promise<number> {
  const began = performance.now();
  await eventually(async () => {
    const [found] = await query('SELECT count(*)::int AS rows FROM request_log WHERE id = ANY($1)', [ids]);
    return found!.rows >= ids.length;
  });
  const seconds = (performance.now() - began) / 1_000;
  const [twice] = await query(
    'SELECT count(*)::int AS rows, count(DISTINCT id)::int AS calls FROM request_log',
  );
  expect(twice!.rows).toBe(twice!.calls);
  await eventually(async () => {
    const [books] = await query(`
      SELECT (SELECT COALESCE(sum(charge_usd), 0) * 1000000000 FROM request_log)::bigint::text AS charged,
             (SELECT COALESCE(sum(spent), 0) FROM limit_meter JOIN limit_rule r ON r.id = rule_id
              WHERE r.resource = 'usd')::bigint::text AS spent`);
    return books!.charged === books!.spent;
  });
  return seconds;
}

/**
 * A plain key waits for no part of Postgres: at p99 not more than 100 ms, or than on the machine as it is just now, by the
 * calls of a gateway beside it. A key with limits waits 10 seconds at most (docs/guides/limits.md).
 */
export function judge(name: string, calls: Calls, control: Calls): string {
  const plain = calls.of('plain');
  expect(plain.results).toEqual({ 200: plain.all.length });
  const usual = control.percentile(0.99);
  expect(plain.percentile(0.99)).toBeLessThanOrEqual(Math.max(100, 3 * usual + 50));
  const limited = calls.of('budget', 'rate', 'concurrency');
  expect(limited.percentile(1)).toBeLessThan(13_000 + 3 * usual);
  const allowed = /^(200|503 limits_unavailable|429 rate_limit_exceeded)$/;
  expect(Object.keys(limited.results).filter((result) => !allowed.test(result))).toEqual([]);
  expect(calls.of('cached').results).toEqual({ 200: calls.of('cached').all.length });
  const words = (['budget', 'rate', 'concurrency', 'replay', 'cached'] as const).map((kind) => {
    const some = calls.of(kind);
    const failed = Object.entries(some.results).filter(([result]) => result !== '200');
    return `${kind} ${some.percentile(1)}${failed.map(([result, count]) => ` (${count} of ${some.all.length}: ${result})`).join('')}`;
  });
  return (
    `${name}: plain p99 ${plain.percentile(0.99)} ms, slowest ${plain.percentile(1)}, of ${plain.all.length}; ` +
    `beside it p99 ${usual}; slowest ${words.join(', ')}`
  );
}
