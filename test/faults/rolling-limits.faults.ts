import { randomBytes } from 'node:crypto';
import { createDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, PROVIDER_KEY } from '../support/gateway.js';
import { itNeeding, unsetVariables } from '../support/needing.js';
import { GatewayProcess } from '../support/process.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Workplace } from '../support/workplace.js';
import { type Issued, JSON_TYPE, sendTo, usageResponse } from '../limits/limited-gateway.js';

/** The folder of a checkout from before budgets of groups and of the installation, with its build. */
const { ROLLING_LIMITS_FROM, ROLLING_LIMITS_MS = '60000' } = process.env;
const IN_FLIGHT = 20;

itNeeding(
  unsetVariables('ROLLING_LIMITS_FROM'),
  'a replica from before budgets of groups charges beside a new one what its rows say, without a deadlock; budgets that it does not know are refused until it has ended',
  async () => {
    const database = await createDatabase({ empty: true });
    const provider = await RawProvider.start(async ({ body, socket }) => {
      await body.catch(() => {});
      const use = { input: 100, output: Math.floor(Math.random() * 1_000) };
      socket.write(answer('200 OK', JSON_TYPE, usageResponse(use)));
    });
    const workplaces = [await Workplace.make(), await Workplace.make()];
    const settingsOf = (at: number) => ({
      DATABASE_URL: database.url,
      PROVIDER_URL: provider.url,
      PROVIDER_KEY,
      ADMIN_TOKEN,
      MASTER_KEY: masterKey,
      DATA_DIR: workplaces[at]!.dataDir,
    });
    const masterKey = randomBytes(32).toString('base64');
    const old = GatewayProcess.ofCheckout(ROLLING_LIMITS_FROM!, workplaces[0]!.folder, settingsOf(0));
    const oldUrl = await old.ready();
    const next = workplaces[1]!.gateway(settingsOf(1));
    const url = await next.ready();
    const admin = async <T>(method: string, path: string, body?: object): Promise<T> => {
      const response = await fetch(`${url}/admin/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
      return (await response.json()) as T;
    };
    try {
      await admin('POST', '/prices', { catalog: 'default', model: 'm', input: '1', output: '20' });
      const much = { usd: '100000', period: 'month' };
      const users = { budgets: [{ usd: '100000', period: 'day' }] };
      await admin('PATCH', '/teams/default', { budgets: [much], each_end_user: users });
      const { key, id } = await admin<Issued>('POST', '/keys', {
        ...{ team: 'default', name: 'both', each_end_user: users },
        budgets: [
          much,
          { tokens: 100_000_000_000, period: 'day' },
          { tokens: 100_000_000_000, period: 'total' },
        ],
      });
      const installation = { budgets: [{ usd: '1000', period: 'month' }] };
      await expect(admin('PATCH', '/limits/installation', installation)).rejects.toThrow(
        /409.*upgrade_in_progress/,
      );

      let calls = 0;
      const failed = new Map<string, number>();
      const until = performance.now() + Number(ROLLING_LIMITS_MS);
      const caller = async (at: string) => {
        while (performance.now() < until) {
          const user = { 'x-gateway-user': `user ${Math.floor(Math.random() * 10)}` };
          const body = { model: 'm', max_tokens: 1_000 };
          const reply = await sendTo(at, key, body, '/v1/chat/completions', user);
          if (reply.status === 200) calls++;
          else {
            const code = reply.code ?? String(reply.status);
            failed.set(code, (failed.get(code) ?? 0) + 1);
          }
        }
      };
      // A key that is new may still be unknown to the old one.
      await eventually(async () => (await sendTo(oldUrl, key, { model: 'm' })).status === 200);
      calls++;
      await Promise.all([oldUrl, url].flatMap((at) => Array.from({ length: IN_FLIGHT }, () => caller(at))));
      await eventually(async () => {
        const [row] = await database.query<{ rows: number }>('SELECT count(*)::int AS rows FROM request_log');
        return row!.rows >= calls;
      });
      const books = await database.query<{ rule: string; spent: string; charged: string }>(
        `SELECT r.scope || ' ' || r.resource || ' ' || r.period AS rule, sum(m.spent)::text AS spent,
                (SELECT sum(CASE r.resource WHEN 'usd' THEN charge_usd * 1000000000 ELSE charge_tokens END)::bigint
                 FROM request_log WHERE key_id = $1)::text AS charged
         FROM limit_rule r JOIN limit_meter m ON m.rule_id = r.id GROUP BY r.id`,
        [id],
      );
      const [{ deadlocks, named, unnamed }] = (await database.query<Record<string, number>>(
        `SELECT (SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()) AS deadlocks,
                count(charge_rules)::int AS named, count(*) FILTER (WHERE charge_rules IS NULL)::int AS unnamed
         FROM request_log`,
      )) as [Record<string, number>];
      process.stdout.write(
        `${calls} calls, ${unnamed} by the old replica, ${deadlocks} deadlocks, failed ${JSON.stringify([...failed])}\n`,
      );
      expect(deadlocks).toBe(0);
      // Where Postgres is too busy, an exchange may take too long.
      failed.delete('limits_unavailable');
      expect([...failed]).toEqual([]);
      expect(named).toBeGreaterThan(100);
      expect(unnamed).toBeGreaterThan(100);
      // Those of end users leave out the one call without a user, which has a subject of its own.
      expect(books).toHaveLength(6);
      expect(books.filter(({ spent, charged }) => spent !== charged)).toEqual([]);
      await expect(admin('PATCH', '/limits/installation', installation)).rejects.toThrow(
        /upgrade_in_progress/,
      );

      expect(await old.stop()).toEqual({ code: 0, signal: null });
      await eventually(() =>
        admin('PATCH', '/limits/installation', installation).then(
          () => true,
          () => false,
        ),
      );
      expect((await sendTo(url, key, { model: 'm' })).status).toBe(200);
    } finally {
      await next.stop();
      await old.stop().catch(() => {});
      for (const workplace of workplaces) await workplace.remove();
      await provider.stop();
      await database.drop();
    }
  },
  Number(ROLLING_LIMITS_MS) + 240_000,
);
