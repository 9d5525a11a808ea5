import { readdir, readFile } from 'node:fs/promises';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { KEPT_FOLDER } from '../../src/lost-changes/entry-tail.service.js';
import { eventually, timePasses } from '../support/eventually.js';
import { LogCluster } from '../support/log-cluster.js';
import { PostgresRelay } from '../support/postgres-relay.js';
import { FEED } from '../lost-changes/lost-tail.js';
import { Fleet, type Replica } from './failover-fleet.js';
import { admin } from './failover-load.js';

const FULL = process.env.POSTERN_TEST_FULL === '1';
/** How much the standby has not received, and how often that is tried. */
const TAILS: [tailMs: number, rounds: number][] = FULL
  ? [
      [1_000, 8],
      [10_000, 8],
      [300_000, 4],
    ]
  : [[1_000, 2]];
const KILLED_EACH = 3;
/**
 * An end that a living replica has read is in force everywhere so long after the first replica has noticed the loss. On a machine
 * on which many programs wait for each core, everything takes as many times longer.
 */
const endsAgainMs = () => 5_000 * Math.max(1, loadavg()[0]! / availableParallelism() / 2);

/** What a call of 10 tokens costs, and 40 of them. */
const CALL_USD = 0.0002;
const BUDGET_USD = 0.008;
const BUDGET_SPENT = 402;

interface Loss {
  id: string;
  state: string;
  noticed_at: Date;
  gap_seconds: number;
  rows_put_back: string;
  claims_put_back: string;
  ends_put_back: string;
}

/** A request of a client, and when it began and ended (ms since 1970). */
interface Seen {
  from: number;
  until: number;
  status: number | null;
}

let fleet: Fleet;
/** Of the replica that does not read the last revocation. */
let relay: PostgresRelay;
let rounds = 0;
/** Of the clients that watch what is rejected. */
let isOver = false;

beforeAll(async () => {
  fleet = await Fleet.start(await LogCluster.start(), 3, async (number, url) => {
    if (number !== 1) return null;
    relay = await PostgresRelay.to(url);
    return { DATABASE_URL: relay.url };
  });
}, 300_000);
afterAll(async () => {
  await fleet.stop();
  await relay.close();
}, 120_000);

afterEach(async () => {
  isOver = true;
  await fleet.load.stop();
});

async function modelsAt(url: string, key: string): Promise<number | null> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } }).catch(
    () => null,
  );
  await response?.arrayBuffer().catch(() => null);
  return response?.status ?? null;
}

const isRejected = (url: string, key: string) =>
  eventually(async () => (await modelsAt(url, key)) === 401, 150_000);

/** Until a replica rejects a key that was revoked and has the entry of the audit log in a file. */
async function hasRead({ url, workplace }: Replica, { id, key }: { id: string; key: string }): Promise<void> {
  await isRejected(url, key);
  const folder = join(workplace.dataDir, KEPT_FOLDER);
  await eventually(async () => {
    const names = await readdir(folder, { recursive: true });
    const files = names.filter((name) => name.endsWith('.log')).map((name) => join(folder, name));
    const texts = await Promise.all(files.map((path) => readFile(path, 'utf8').catch(() => '')));
    const lines = texts.flatMap((text) => text.split('\n'));
    return lines.some((line) => line.includes(id) && line.includes('"action":"revoked"'));
  });
}

/** Until the standby has everything. */
async function caughtUp(cluster: LogCluster, standby: LogCluster): Promise<void> {
  await eventually(async () => {
    const [{ at }] = (await cluster.query<{ at: string }>('SELECT pg_current_wal_lsn()::text AS at')) as [
      { at: string },
    ];
    const [row] = await standby.query<{ is: boolean }>(
      'SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn AS is',
      [at],
    );
    return row!.is;
  });
}

/** Sends again and again until it is told to stop. */
async function watch(send: () => Promise<number | null>, isOver: () => boolean): Promise<Seen[]> {
  const seen: Seen[] = [];
  while (!isOver()) {
    const from = Date.now();
    const status = await send();
    seen.push({ from, until: Date.now(), status });
    await timePasses(200, 'the pace of a client');
  }
  return seen;
}

const all = TAILS.flatMap(([tailMs, count]) =>
  Array.from({ length: count }, (_, i) => ({ tailMs, isKilled: i % KILLED_EACH === 1 })),
);

it.each(all)(
  'loses nothing that living replicas know when a standby without the last $tailMs ms is promoted, a replica killed: $isKilled',
  async ({ tailMs, isKilled }) => {
    const round = ++rounds;
    isOver = false;
    const { load, replicas, kinds } = fleet;
    const cluster = fleet.cluster as LogCluster;
    const [reader, other, victim] = replicas as [
      (typeof replicas)[0],
      (typeof replicas)[0],
      (typeof replicas)[0],
    ];
    const standby = await cluster.standby();
    const early = await fleet.issue({});
    const late = await fleet.issue({});
    const small = await fleet.issue({ budgets: [{ usd: String(BUDGET_USD), period: 'day' }] });
    const budget = { name: 'small', key: small.key, replays: false };
    let spent = 0;
    const spendAt = (url: string) => load.send(url, budget, `small-${round}-${++spent}`, 10);
    load.run(fleet.urls, kinds, tailMs >= 60_000 ? 1_000 : undefined);
    await fleet.moreCalls(20);
    for (const url of fleet.urls)
      for (const { key } of [early, late]) await eventually(async () => (await modelsAt(url, key)) !== 401);
    for (let i = 0; i < 10; i++) expect(await spendAt(reader.url)).toBe(200);
    await fleet.expectLedgerOf(small.id);
    await caughtUp(cluster, standby);

    // From here on, all is lost.
    await standby.freeze();
    const tail = timePasses(tailMs, 'what the standby does not receive');
    await admin(reader.url, 'POST', `/keys/${early.id}/revoke`, {});
    for (const replica of replicas) await hasRead(replica, early);
    await eventually(async () => (await spendAt(reader.url)) === BUDGET_SPENT);
    await tail;
    if (isKilled) await victim.process.process.kill();
    relay.set(FEED, 'cut');
    await admin(reader.url, 'POST', `/keys/${late.id}/revoke`, {});
    const readers = isKilled ? [reader] : [reader, victim];
    for (const replica of readers) await hasRead(replica, late);

    const watched = (url: string, key: string) =>
      watch(
        () => modelsAt(url, key),
        () => isOver,
      );
    const living = isKilled ? [reader, other] : replicas;
    const earlySeen = living.map(({ url }) => watched(url, early.key));
    const lateSeen = readers.map(({ url }) => watched(url, late.key));
    const otherSeen = watched(other.url, late.key);
    const spending = [reader, other].map(({ url }) =>
      watch(
        () => spendAt(url),
        () => isOver,
      ),
    );
    await fleet.forwarder.close();
    await cluster.signal('SIGKILL');
    const promotedAt = Date.now();
    await standby.promote();
    relay.set(FEED, 'none');
    await fleet.lead(standby);
    if (isKilled) await fleet.restart(victim);

    const loss = await eventually(
      async () =>
        (
          await standby.query<Loss>(
            'SELECT * FROM database_regression WHERE server = pg_postmaster_start_time()',
          )
        )[0],
    );
    expect(loss.state).toBe('put_back');
    await fleet.compared();
    // What processes hold of the budget by now, calls may still spend.
    const [hold] = await standby.query<{ usd: number }>(
      `SELECT COALESCE(sum(h.amount), 0)::float8 / 1000000000 AS usd
       FROM limit_hold h JOIN limit_rule r ON r.id = h.rule_id WHERE r.scope_id = $1`,
      [small.id],
    );
    const admittedAt = Date.now();
    await fleet.moreCalls(20);
    for (const { url } of replicas) for (const { key } of [early, late]) await isRejected(url, key);
    await load.stop();
    isOver = true;

    // A replica that has read an end never accepts the key again.
    for (const seen of [...(await Promise.all(earlySeen)), ...(await Promise.all(lateSeen))])
      expect(seen.filter(({ status }) => ![401, 503, null].includes(status))).toEqual([]);
    // Another one does not once it is put back, by Postgres's clock.
    const [end] = await standby.query<{ at: Date }>(
      `SELECT min(at) AS at FROM audit_log WHERE action = 'put_back' AND subject_id = $1`,
      [late.id],
    );
    const endedAfter = end!.at.getTime() - loss.noticed_at.getTime();
    expect(endedAfter).toBeLessThanOrEqual(endsAgainMs());
    const accepted = (await otherSeen).filter(({ status }) => ![401, 503, null].includes(status));
    const acceptedAfter = Math.max(0, ...accepted.map(({ from }) => from - loss.noticed_at.getTime()));
    expect(acceptedAfter).toBeLessThanOrEqual(endsAgainMs());
    // A budget is exceeded by what was granted between the promotion and the end of the roll call or held then, at most.
    await fleet.expectWhatHolds();
    await fleet.expectLedgerOf(small.id);
    const granted = (await Promise.all(spending)).flat().filter(({ status }) => status === 200);
    const later = granted.filter(({ from }) => from > admittedAt).length * CALL_USD;
    expect(later).toBeLessThanOrEqual(hold!.usd + 1e-9);
    const [sum] = await standby.query<{ usd: number }>(
      'SELECT sum(charge_usd)::float8 AS usd FROM request_log WHERE key_id = $1',
      [small.id],
    );
    const overspent = sum!.usd - BUDGET_USD;
    const until = granted.filter(({ from, until }) => until >= promotedAt && from <= admittedAt);
    const allowed = until.length * CALL_USD + hold!.usd;
    expect(overspent).toBeLessThanOrEqual(allowed + 1e-9);
    // A call that has run does not run again.
    const replay = kinds.find(({ replays }) => replays)!;
    const done = [...load.sent]
      .filter(([, { kind, status }]) => kind === 'replay' && status === 200)
      .slice(-20);
    for (const [user] of done) await load.send(reader.url, replay, user);
    expect(done.filter(([user]) => load.arrivals.get(user) !== 1)).toEqual([]);

    const [after] = await standby.query<Loss>('SELECT * FROM database_regression WHERE id = $1', [loss.id]);
    process.stdout.write(
      `round ${round}, a tail of ${tailMs / 1_000} s${isKilled ? ', a replica killed' : ''}: ${after!.gap_seconds} s lost; ` +
        `${after!.rows_put_back} rows, ${after!.claims_put_back} claims, ${after!.ends_put_back} ends put back; ` +
        `the end that one replica had not read in force after ${endedAfter} ms, accepted there until ${acceptedAfter} ms; ` +
        `load ${loadavg()[0]!.toFixed(0)}; budget of $${BUDGET_USD} exceeded by $${overspent.toFixed(4)} of $${allowed.toFixed(4)} at most; ${load.arrivals.size} calls so far\n`,
    );
    await cluster.remove();
  },
  1_200_000,
);
