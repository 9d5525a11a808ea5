import { mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { INSTALLATION } from '../../src/limit-rules/limit-rule.entity.js';
import { createDays, KEY, TEAM } from '../request-log/rows.js';
import type { TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { Ledgers, usd } from './ledgers.js';
import { addRule, holdsOf, USD } from './rules.js';

/*
 * What version 0.1.0 wrote before rows named the budgets that they are charged against: calls of a key with budgets, which
 * name none. Call 1 began; 2 was read, for less than it had reserved; 3 ended, and its usage is not known; 4, for more, waits
 * whole; 5 was rejected by the provider. Never regenerate them.
 */
const WRITTEN_BY_0_1_0 = String.raw`v1 a8266e6e {"t":"B","started_at":"2025-11-24T02:49:41.998Z","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6001","team_id":"01890a5d-ac96-774b-bcce-b302099a8057","key_id":"01890a5d-ac96-774b-bcce-b302099a8058","provider":"default","method":"POST","path":"/v1/chat/completions","sdk_retry_count":0,"client_ip":"203.0.113.7","user_agent":"agent/1","charge_usd":"0.123456789","charge_tokens":5000,"limit_subject":"ann"}
v1 bacabc7c {"t":"B","started_at":"2025-11-24T23:59:59.999Z","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6002","team_id":"01890a5d-ac96-774b-bcce-b302099a8057","key_id":"01890a5d-ac96-774b-bcce-b302099a8058","provider":"default","method":"POST","path":"/v1/chat/completions","sdk_retry_count":0,"client_ip":"203.0.113.7","user_agent":"agent/1","charge_usd":"0.5","charge_tokens":4196,"limit_subject":"ben"}
v1 a1bec3f4 {"t":"B","started_at":"2025-11-25T00:00:00.000Z","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6003","team_id":"01890a5d-ac96-774b-bcce-b302099a8057","key_id":"01890a5d-ac96-774b-bcce-b302099a8058","provider":"default","method":"POST","path":"/v1/chat/completions","sdk_retry_count":0,"client_ip":"203.0.113.7","user_agent":"agent/1","charge_usd":"0.25","charge_tokens":4196,"limit_subject":"ann"}
v1 c40cc02d {"t":"E","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6002","streamed":false,"status":200,"outcome":"completed","request_bytes":500,"response_bytes":700,"ttfb_ms":1.5,"duration_ms":2.5,"provider_request_id":"req_1"}
v1 5fcde7f0 {"t":"U","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6002","model":"gpt-4o","outcome":"completed","duration_ms":3.5,"prompt_tokens":100,"completion_tokens":23,"cost_usd":"0.000000007"}
v1 2cc5b8c6 {"t":"E","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6003","streamed":false,"status":200,"outcome":"completed","request_bytes":500,"response_bytes":700,"ttfb_ms":1.5,"duration_ms":2.5,"provider_request_id":"req_1"}
v1 8dbfb983 {"t":"R","started_at":"2025-11-25T10:00:00.000Z","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6004","team_id":"01890a5d-ac96-774b-bcce-b302099a8057","key_id":"01890a5d-ac96-774b-bcce-b302099a8058","provider":"default","method":"POST","path":"/v1/chat/completions","model":"gpt-4o","streamed":false,"status":200,"outcome":"completed","request_bytes":500,"response_bytes":700,"ttfb_ms":1.5,"duration_ms":3.5,"prompt_tokens":1000,"completion_tokens":1,"provider_request_id":"req_1","sdk_retry_count":0,"client_ip":"203.0.113.7","user_agent":"agent/1","cost_usd":"1.5","charge_usd":"1.5","charge_tokens":1001,"limit_subject":"ben"}
v1 a2079c14 {"t":"B","started_at":"2025-11-25T10:00:01.000Z","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6005","team_id":"01890a5d-ac96-774b-bcce-b302099a8057","key_id":"01890a5d-ac96-774b-bcce-b302099a8058","provider":"default","method":"POST","path":"/v1/chat/completions","sdk_retry_count":0,"client_ip":"203.0.113.7","user_agent":"agent/1","charge_usd":"0.000000001","charge_tokens":1,"limit_subject":"ann"}
v1 14df7cd0 {"t":"E","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6005","streamed":false,"status":429,"outcome":"completed","request_bytes":500,"response_bytes":700,"ttfb_ms":1.5,"duration_ms":2.5,"provider_request_id":"req_1"}
v1 f77908c5 {"t":"U","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6005","outcome":"completed","duration_ms":3.5}
`;
const TOKENS = 1_000_000;

let ledgers: Ledgers;
let database: TestDatabase;
beforeEach(async () => {
  ledgers = await Ledgers.start();
  database = ledgers.database;
});
afterEach(() => ledgers.stop());

interface Book {
  rule_id: string;
  subject: string;
  window_start: Date;
  spent: string;
}

never(
  'a journal from before rows named budgets charges those of the key and its team exactly, no others, and once',
  async () => {
    const day = await addRule(database, 'usd', 'day', 100n * USD, { scope_id: KEY });
    const tokens = await addRule(database, 'tokens', 'month', TOKENS, { scope_id: KEY });
    const team = { scope: 'team', scope_id: TEAM };
    const total = await addRule(database, 'usd', 'total', 100n * USD, { ...team, mode: 'warn' });
    const users = await addRule(database, 'tokens', 'week', TOKENS, { ...team, scope: 'team_end_user' });
    const ofKey = { scope_id: uuidv7(), owner_id: KEY };
    await addRule(database, 'usd', 'day', 100n * USD, { ...ofKey, models: ['gpt*'], filter: 'model=gpt*' });
    const all = { scope: 'installation', scope_id: uuidv7(), owner_id: INSTALLATION, rank: 2 };
    await addRule(database, 'usd', 'total', 100n * USD, all);
    await addRule(database, 'usd', 'total', 100n * USD, { scope_id: uuidv7() });

    const from = (date: string) => new Date(`${date}T00:00:00Z`);
    await createDays(database, from('2025-11-24'), from('2025-11-25'));
    // What the process held that has died.
    const run = uuidv7();
    await database.query('INSERT INTO limit_process (id, seq, seen_at) VALUES ($1, 1, now())', [run]);
    await database.query(
      `WITH hold AS (INSERT INTO limit_hold VALUES ($1, '', '2025-11-25', $2, 7, 7))
     INSERT INTO limit_meter (rule_id, window_start, held) VALUES ($1, '2025-11-25', 7)`,
      [day, run],
    );
    const dataDir = await mkdtemp(join(tmpdir(), 'postern-ledger-'));
    const folder = join(dataDir, 'journal', run);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, '00000001.log'), WRITTEN_BY_0_1_0);

    const drain = async () => {
      const engine = await ledgers.engine({ dataDir });
      await eventually(async () => !(await readdir(join(dataDir, 'journal'))).includes(run));
      return engine;
    };
    const at = await drain();
    const books = () =>
      database.query<Book>(
        `SELECT rule_id, subject, window_start, spent FROM (
         SELECT rule_id, subject, window_start, spent FROM limit_meter
         UNION ALL SELECT rule_id, subject, window_start, spent FROM limit_spent) meter
       WHERE spent <> 0 ORDER BY window_start, subject, spent::bigint`,
      );
    const expected = [
      { rule_id: total, subject: '', window_start: new Date(0), spent: '1873456796' },
      { rule_id: tokens, subject: '', window_start: from('2025-11-01'), spent: '10320' },
      { rule_id: day, subject: '', window_start: from('2025-11-24'), spent: '123456796' },
      { rule_id: users, subject: 'ann', window_start: from('2025-11-24'), spent: '9196' },
      { rule_id: users, subject: 'ben', window_start: from('2025-11-24'), spent: '1124' },
      { rule_id: day, subject: '', window_start: from('2025-11-25'), spent: '1750000000' },
    ];
    expect(await books()).toEqual(expected);
    expect(
      await database.query(
        `SELECT charge_rules, sum(charge_usd)::text AS usd, sum(charge_tokens)::int AS tokens, count(*)::int AS rows
       FROM request_log GROUP BY 1`,
      ),
    ).toEqual([{ charge_rules: null, usd: '1.873456796', tokens: 10_320, rows: 5 }]);
    expect(await holdsOf(database, day)).toBe(0n);
    expect(await database.query('SELECT FROM limit_meter WHERE held <> 0')).toEqual([]);

    // A process that dies before it removes the journal leaves it for the next one.
    await ledgers.stopEngine(at);
    await mkdir(folder);
    await writeFile(join(folder, '00000001.log'), WRITTEN_BY_0_1_0);
    const next = await drain();
    expect(await books()).toEqual(expected);

    // The rows of this version name theirs, beside them.
    const ticket = await next.admit(TEAM, KEY, usd(USD));
    next.begin(ticket, KEY, TEAM).end(USD);
    await eventually(async () => (await database.query('SELECT FROM request_log')).length === 6);
    const [{ charges, spent }] = (await database.query<{ charges: string; spent: string }>(
      `SELECT (SELECT (sum(charge_usd) * 1000000000)::bigint::text FROM request_log) AS charges,
            (SELECT spent::text FROM limit_meter WHERE rule_id = $1) AS spent`,
      [total],
    )) as [{ charges: string; spent: string }];
    expect(spent).toBe(charges);
    expect(spent).toBe('2873456796');
  },
);
