import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { declaredPatience, patience } from '../../src/platform/patience.js';
import { setPatience } from '../support/patience.js';

const SRC = resolve(__dirname, '../../src');

/** Milliseconds after which the gateway gives up in production. What users rely on to be so soon is not here. */
const PRODUCTION: Record<string, number> = {
  'an OpenID provider': 10_000,
  'uses of keys at a stop': 1_000,
  'another command with these sign-ins': 30_000,
  'a gateway at a sign-in': 15_000,
  'another command with this DATA_DIR': 3_000,
  'a consumer': 300_000,
  'rows for a consumer': 300_000,
  'the change feed': 2_000,
  'a check of a connection': 5_000,
  'a connection to Postgres': 5_000,
  'the settings of a session': 5_000,
  'a look-up': 5_000,
  'the lock of migrations': 2_000,
  'the lock of a job': 5_000,
  'a connection to an embedded Postgres': 5_000,
  'another start of an embedded Postgres': 330_000,
  'the start of an embedded Postgres': 300_000,
  'processes of an embedded Postgres': 15_000,
  'claims at a stop': 2_000,
  'an idempotency record': 5_000,
  'parameters of a token request': 10_000,
  "the gateway's certificate": 5_000,
  'an issuer': 10_000,
  'the check of a sign-in': 8_000,
  'the state of a job': 60_000,
  'the results of a job': 1_800_000,
  'an exchange of limits': 2_000,
  'locked meters at a stop': 2_000,
  'what calls have not used': 5_000,
  'exchanges that fail': 5_000,
  'exchanges before degraded': 5_000,
  'a call that waits for limits': 10_000,
  'the price of a call': 2_000,
  'Postgres before degraded': 5_000,
  'Postgres for readiness': 1_000,
  'calls that were cut off': 5_000,
  'spans at a stop': 3_000,
  'a step of a stop': 500,
  'prices of a batch': 250,
  'the lock of a repricing': 5_000,
  'a statement of a repricing': 60_000,
  'the end of an unread body': 5_000,
  'a response that is not delivered': 1_000,
  'a gathered body': 60_000,
  'the next bytes of a gathered body': 120_000,
  'a test of a provider': 10_000,
  'a reading from a provider': 30_000,
  'a token endpoint': 15_000,
  'a connection to a metadata service': 2_000,
  'usage at the end of a WebSocket': 5_000,
  'the end of a frame': 1_000,
  'a comparison with Postgres': 5_000,
  'the sync of the journal at a stop': 2_000,
  'a statement about lost rows': 30_000,
  'a statement about partitions': 30_000,
  'the lock of partitions at a start': 5_000,
  'the lock of partitions': 2_000,
  'a batch of rows': 10_000,
  'rows at a stop': 5_000,
  'a search of the log': 2_000,
  'a query of the admin API': 30_000,
  'a connection for a query': 60_000,
  'a query of a key': 5_000,
  'a query of an export': 600_000,
  'metrics of a worker': 1_000,
  'workers after the grace': 13_000,
  'metrics of all workers': 5_000,
  'the end of a failed start': 10_000,
  'the first connection to Postgres': 5_000,
  'a message to a sink': 60_000,
  'a connection to a sink': 15_000,
  'rows for a sink': 300_000,
  'usage of new costs': 10_000,
  'a statement about usage': 600_000,
};

it('is declared with these values, and nothing else is', async () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
    (path) =>
      path.endsWith('.ts') && /\bpatience\('|\bpatience\("/.test(readFileSync(join(SRC, path), 'utf8')),
  );
  for (const path of files) await import(`../../src/${path.replace(/ts$/, 'js')}`);
  expect(Object.fromEntries(declaredPatience())).toEqual(PRODUCTION);
});

it('is named as declared where a test changes it', () => {
  const tests = resolve(SRC, '../test');
  const named = readdirSync(tests, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && path !== 'platform/patience.test.ts')
    .flatMap((path) => [...readFileSync(join(tests, path), 'utf8').matchAll(/\bsetPatience\(([^)]*)\)/g)])
    .flatMap(([, given]) => [...given!.matchAll(/'([^']+)'|"([^"]+)"/g)])
    .map(([, single, double]) => single ?? double!);
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((name) => !(name in PRODUCTION))).toEqual([]);
});

it('is 20 times as long in tests, and as long as a file says from there on, also where it was declared before', () => {
  const one = patience('one', 1_000);
  const other = patience('other', 3);
  expect([one.ms, other.ms]).toEqual([20_000, 60]);
  const restore = setPatience(0.1, 'one');
  expect([one.ms, other.ms]).toEqual([100, 60]);
  setPatience(0.5);
  expect([one.ms, other.ms]).toEqual([500, 2]);
  restore();
  expect([one.ms, other.ms]).toEqual([20_000, 60]);
  expect(() => patience('one', 1)).toThrow('declared twice');
});
