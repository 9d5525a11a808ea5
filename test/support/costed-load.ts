import { randomBytes } from 'node:crypto';
import { runBuilt } from './process.js';
import { RawClient, request } from './raw-client.js';
import { answer, RawProvider } from './raw-provider.js';
import { createDatabase } from './database.js';
import { eventually, timePasses } from './eventually.js';
import { drained } from './kill-rounds.js';
import { Workplace } from './workplace.js';

/** USD per million tokens. */
const PRICE = { input: '0.123457', cached_input: '0.061729', output: '7.654321' };
const READY_MS = 150_000;

interface Replica {
  workplace: Workplace;
  port: number;
  /** Ends it as if its machine had died. */
  kill: () => Promise<void>;
  stop: () => Promise<unknown>;
}

interface Row {
  idempotency_key: string;
  prompt_tokens: number | null;
  cost_usd: string | null;
}

/** Tokens of a call, by its number. */
function usageOf(n: number) {
  const prompt = 1 + ((n * 7_919) % 200_003);
  return { prompt, cached: (n * 31) % prompt, completion: (n * 104_729) % 9_973 };
}

/** What a call costs in nano-dollars, computed by hand: pico-dollars, rounded half up. */
function costOf(n: number): bigint {
  const { prompt, cached, completion } = usageOf(n);
  const pico =
    BigInt(prompt - cached) * 123_457n + BigInt(cached) * 61_729n + BigInt(completion) * 7_654_321n;
  return (pico + 500n) / 1_000n;
}

const inUsd = (nano: bigint) => `${nano / 10n ** 9n}.${String(nano % 10n ** 9n).padStart(9, '0')}`;

/**
 * Calls with known usage through replicas of which all but the last are killed under load, one after the other. The first
 * starts again and drains its own journal; `postern journal drain` drains those of the others. Then each row must have
 * the exact cost of its call, and the sums of usage must equal the rows.
 *
 * @returns counts, in words
 */
export async function costedLoad(calls: number, clients: number, count: number): Promise<string> {
  const database = await createDatabase();
  const provider = await RawProvider.start(async ({ body, socket }) => {
    const { bytes } = await body;
    const { n } = JSON.parse(bytes.toString()) as { n: number };
    const { prompt, cached, completion } = usageOf(n);
    const usage = {
      prompt_tokens: prompt,
      completion_tokens: completion,
      prompt_tokens_details: { cached_tokens: cached },
    };
    socket.write(answer('200 OK', ['Content-Type: application/json'], JSON.stringify({ usage })));
  });
  const settings = {
    ADMIN_TOKEN: randomBytes(32).toString('base64url'),
    MASTER_KEY: randomBytes(32).toString('base64'),
    DATABASE_URL: database.url,
    PROVIDER_URL: provider.url,
  };
  const workplaces: Workplace[] = [];
  const start = async (workplace: Workplace) => {
    const gateway = workplace.gateway(settings);
    const port = Number(new URL(await gateway.ready()).port);
    const replica: Replica = {
      workplace,
      port,
      kill: () => gateway.process.kill(),
      stop: () => gateway.stop(),
    };
    return { replica, gateway };
  };
  const add = async () => {
    const workplace = await Workplace.make();
    workplaces.push(workplace);
    return start(workplace);
  };
  try {
    const first = await add();
    const key = await first.gateway.firstKey();
    const set = await fetch(`http://127.0.0.1:${first.replica.port}/admin/v1/prices`, {
      method: 'POST',
      headers: { authorization: `Bearer ${settings.ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ catalog: 'default', model: 'm-*', ...PRICE }),
    });
    expect(set.status).toBe(201);
    const alive = [first.replica];
    while (alive.length < count) alive.push((await add()).replica);

    let started = 0;
    const answered = new Set<number>();
    const broken = new Set<number>();
    const client = async (index: number) => {
      let at: Replica | undefined;
      let connection: RawClient | null = null;
      while (started < calls) {
        if (connection === null || !alive.includes(at!)) {
          at = alive[index % alive.length]!;
          connection = await RawClient.connect(at.port).catch(() => null);
          if (connection === null) {
            await timePasses(20, 'the pace of a client without a connection');
            continue;
          }
        }
        const n = started++;
        connection.send(
          request(
            'POST /v1/chat/completions',
            [`Authorization: Bearer ${key}`, `Idempotency-Key: ${n}`, 'Content-Type: application/json'],
            JSON.stringify({ model: `m-${n % 5}`, n }),
          ),
        );
        const reply = await connection.answer().catch(() => null);
        if (reply?.status === 200) answered.add(n);
        else {
          broken.add(n);
          connection.destroy();
          connection = null;
        }
      }
      connection?.destroy();
    };
    const load = Promise.all(Array.from({ length: clients }, (_, i) => client(i)));
    for (let i = 0; i < count - 1; i++) {
      await eventually(() => answered.size >= (calls * (i + 1)) / (count + 1), 600_000);
      const victim = alive.shift()!;
      await victim.kill();
      if (i === 0) alive.push((await start(victim.workplace)).replica);
    }
    await load;
    // Of two replicas the first was killed and came back; of three the second stays dead.
    for (const workplace of workplaces.slice(1, count - 1)) {
      const drain = runBuilt('cli/start', ['journal', 'drain', workplace.dataDir], {
        env: { DATABASE_URL: database.url },
        cwd: workplace.folder,
      });
      expect(await drain.ended).toEqual({ code: 0, signal: null });
    }
    await drained(workplaces[0]!);

    const rows = await eventually(async () => {
      const found = await database.query<Row>(
        'SELECT idempotency_key, prompt_tokens, cost_usd FROM request_log',
      );
      const logged = new Set(found.map(({ idempotency_key: call }) => Number(call)));
      // Calls that broke off may have rows too: their number says nothing.
      const isPriced = found.every((row) => row.prompt_tokens === null || row.cost_usd !== null);
      return isPriced && [...answered].every((n) => logged.has(n)) && found;
    }, READY_MS);
    const seen = new Set(rows.map(({ idempotency_key: call }) => Number(call)));
    expect(seen.size).toBe(rows.length);
    expect([...answered].filter((n) => !seen.has(n))).toEqual([]);
    let sum = 0n;
    let unknown = 0;
    for (const { idempotency_key: call, prompt_tokens: tokens, cost_usd: cost } of rows) {
      const n = Number(call);
      if (tokens === null) {
        unknown++;
        expect([n, cost]).toEqual([n, null]);
        continue;
      }
      expect([n, tokens, cost]).toEqual([n, usageOf(n).prompt, inUsd(costOf(n))]);
      sum += costOf(n);
    }
    // A replica that is killed before it has read the usage of a response does not know it: at most one call of each
    // client that was under way, and the one it had just ended.
    expect(unknown).toBeLessThanOrEqual(2 * clients * (count - 1));
    expect(rows.length - unknown).toBeGreaterThan(calls / 2);
    const [total] = await database.query('SELECT sum(cost_usd)::text AS sum FROM request_log');
    expect(total).toEqual({ sum: inUsd(sum) });

    await eventually(async () => {
      const [added] = await database.query<{ all: boolean }>(
        'SELECT (SELECT "cursor" FROM usage_rollup) >= (SELECT max(recorded_at) FROM request_log) AS all',
      );
      return added!.all;
    }, READY_MS);
    for (const [table, start] of [
      ['usage_slot', `date_bin('30 minutes', started_at, 'epoch')`],
      ['usage_day', `date_trunc('day', started_at, 'UTC')`],
    ]) {
      const sums = 'sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), sum(cost_usd)';
      const ofTable = `SELECT slot, team_id, key_id, provider, model, sum(calls), ${sums} FROM ${table} GROUP BY 1, 2, 3, 4, 5`;
      const ofRows = `SELECT ${start}, team_id, key_id, provider, model, count(*), ${sums} FROM request_log GROUP BY 1, 2, 3, 4, 5`;
      expect(await database.query(`(${ofTable}) EXCEPT (${ofRows})`)).toEqual([]);
      expect(await database.query(`(${ofRows}) EXCEPT (${ofTable})`)).toEqual([]);
    }
    for (const { stop } of alive) expect(await stop()).toEqual({ code: 0, signal: null });
    return (
      `${count - 1} of ${count} replicas killed; ${calls} calls: ${answered.size} answered, ${broken.size} broken; ` +
      `${rows.length} rows, ${unknown} without usage; ${inUsd(sum)} USD in rows, half hours and days`
    );
  } finally {
    for (const workplace of workplaces) await workplace.remove();
    await provider.stop();
    await database.drop();
  }
}
