import { createDatabase, type TestDatabase } from '../support/database.js';
import { filesHolding } from '../support/files-below.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { withFault } from '../support/kill-rounds.js';
import type { GatewayProcess } from '../support/process.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { FULL } from '../support/scale.js';
import { Workplace } from '../support/workplace.js';
import { exchange, statusWith } from './exchanges.js';
import { FakeIssuer } from './fake-issuer.js';

/** Kills at each step. */
const ROUNDS = FULL ? 25 : 1;
/** Each kill is followed by the start of a process. */
const TIMEOUT_MS = FULL ? 7_200_000 : 240_000;
const CLIENTS = 4;
/** Before the statement is sent; once it is committed, before the response; and with a part of the response written. */
const STEPS = [
  { at: 'issue', do: 'kill-before' },
  { at: 'token', do: 'kill-before' },
  { at: 'token', do: 'kill-after' },
] as const;

let database: TestDatabase;
let provider: RawProvider;
let issuer: FakeIssuer;
let workplaces: Workplace[];
let settings: Record<string, string>;
beforeAll(async () => {
  database = await createDatabase();
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'ok'));
  });
  issuer = await FakeIssuer.start();
  workplaces = await Promise.all([1, 2, 3].map(() => Workplace.make()));
  settings = { DATABASE_URL: database.url, PROVIDER_URL: provider.url, ADMIN_TOKEN, LOG_LEVEL: 'warn' };
});
afterAll(async () => {
  for (const workplace of workplaces) await workplace.remove();
  await issuer.stop();
  await provider.stop();
  await database.drop();
});

async function admin(url: string, path: string, body: object): Promise<void> {
  const response = await fetch(`${url}/admin/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect([response.status, await response.text()]).toEqual([201, expect.anything()]);
}

const stored = async () => {
  const [row] = await database.query<{ tokens: number; ends: number }>(
    `SELECT count(*)::int AS tokens, count(*) FILTER (WHERE expires_at <= created_at + interval '60 minutes')::int AS ends
     FROM gateway_key_secret WHERE kind = 'exchange'`,
  );
  return row!;
};

it(
  'of a process that is killed while it issues tokens, nobody has a token that was not sent, and a repeat gets one',
  async () => {
    const [one, two] = workplaces.slice(0, 2).map((workplace) => workplace.gateway(settings)) as [
      GatewayProcess,
      GatewayProcess,
    ];
    const steady = await Promise.all([one.ready(), two.ready()]);
    await admin(steady[0], '/keys', { team: 'default', name: 'ci', secret: false });
    await admin(steady[0], '/trusts', {
      ...{
        name: 'job',
        key: 'default/ci',
        issuer: issuer.url,
        audience: 'gateway',
        claims: { sub: ['job'] },
      },
      max_live: 100_000,
    });
    const held: string[] = [];
    let printed = '';
    for (let round = 0; round < ROUNDS; round++) {
      for (const point of STEPS) {
        const before = (await stored()).tokens - held.length;
        const killed = workplaces[2]!.gateway({ ...settings, ...withFault({ ...point, nth: 3 + round }) });
        const urls = [await killed.ready(), ...steady];
        let isAlive = true;
        const ended = killed.process.ended.then(({ signal }) => {
          isAlive = false;
          return signal;
        });
        await Promise.all(
          Array.from({ length: CLIENTS }, async () => {
            while (isAlive) {
              const identity = await issuer.sign();
              // Whoever got no response tries the next replica with the same identity token.
              for (const url of urls) {
                const issued = await exchange({ url }, 'job', identity).catch(() => null);
                // One address may try 50 a second.
                if (issued === null || issued.status === 429) continue;
                expect(issued.status).toBe(200);
                held.push(issued.token!);
                break;
              }
            }
          }),
        );
        expect(await ended).toBe('SIGKILL');
        printed += killed.process.stdout + killed.process.stderr;
        const left = (await stored()).tokens - held.length - before;
        expect(left).toBeGreaterThanOrEqual(point.at === 'token' ? 1 : 0);
        // Not more than were under way.
        expect(left).toBeLessThanOrEqual(CLIENTS);
      }
      if (FULL) process.stdout.write(`${(round + 1) * STEPS.length} kills, ${held.length} tokens received\n`);
    }
    const restarted = workplaces[2]!.gateway(settings);
    const url = await restarted.ready();

    // Each response had a token of its own, and each of them works everywhere.
    expect(new Set(held).size).toBe(held.length);
    for (const token of held.slice(-20))
      for (const replica of [url, ...steady]) expect(await statusWith({ url: replica }, token)).toBe(200);
    // What nobody got ends by itself.
    const { tokens, ends } = await stored();
    expect(ends).toBe(tokens);

    // And it is nowhere: a digest and the first characters are all there is.
    for (const workplace of workplaces)
      expect(await filesHolding(workplace.folder, held.slice(-20))).toEqual([]);
    for (const gateway of [one, two]) printed += gateway.process.stdout + gateway.process.stderr;
    const dump = await database.query<{ row: string }>('SELECT s::text AS row FROM gateway_key_secret s');
    expect(dump.filter(({ row }) => /ptn_[0-9A-Za-z]{38}/.test(row))).toEqual([]);
    for (const one of held) expect(printed).not.toContain(one);
  },
  TIMEOUT_MS,
);
