import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LogRow } from '../../src/request-log/columns.js';
import { encodeLines, encodeRecord } from '../../src/request-log/journal/record-codec.js';
import { emptyRow } from '../../src/request-log/log-row.js';
import { readDeadRows } from '../../src/request-log/journal/recovery.js';
import { KEY, TEAM } from './rows.js';
import { never } from '../support/never.js';

/*
 * The journal of another version must recover: these lines are what version 0.1.0 wrote before the columns were derived
 * from one list. Call 1 was read, call 2 ended, call 3 began, call 4 waits whole. Never regenerate them.
 */
const WRITTEN_BY_0_1_0 = String.raw`v1 586c618f {"t":"B","started_at":"2025-11-24T02:49:41.998Z","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6001","team_id":"01890a5d-ac96-774b-bcce-b302099a8057","key_id":"01890a5d-ac96-774b-bcce-b302099a8058","provider":"default","method":"POST","path":"/v1/chat/completions","idempotency_key":null,"sdk_retry_count":0,"client_ip":"203.0.113.7","user_agent":"\u00dcn\u00ef \"quoted\" \ud834\udd1e"}
v1 b9160d1d {"t":"B","started_at":"2025-11-24T02:49:41.998Z","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6002","team_id":"01890a5d-ac96-774b-bcce-b302099a8057","key_id":"01890a5d-ac96-774b-bcce-b302099a8058","provider":"default","method":"POST","path":"/v1/chat/completions","idempotency_key":null,"sdk_retry_count":0,"client_ip":"203.0.113.7","user_agent":"\u00dcn\u00ef \"quoted\" \ud834\udd1e"}
v1 e63fd693 {"t":"B","started_at":"2025-11-24T02:49:41.998Z","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6003","team_id":"01890a5d-ac96-774b-bcce-b302099a8057","key_id":"01890a5d-ac96-774b-bcce-b302099a8058","provider":"default","method":"POST","path":"/v1/chat/completions","idempotency_key":null,"sdk_retry_count":0,"client_ip":"203.0.113.7","user_agent":"\u00dcn\u00ef \"quoted\" \ud834\udd1e"}
v1 e29b458f {"t":"E","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6001","outcome":"completed","status":200,"error_code":null,"streamed":true,"request_bytes":5000000000,"response_bytes":7,"ttfb_ms":1.5,"duration_ms":2.5,"provider_request_id":"req_\u00e9"}
v1 a48bdaae {"t":"E","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6002","outcome":"upstream_timeout","status":504,"error_code":"upstream_timeout","streamed":false,"request_bytes":5000000000,"response_bytes":7,"ttfb_ms":1.5,"duration_ms":2.5,"provider_request_id":"req_\u00e9"}
v1 9760b236 {"t":"U","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6001","outcome":"client_aborted","error_code":null,"duration_ms":3.5,"model":"gpt-4o","prompt_tokens":1,"completion_tokens":2,"cached_tokens":null,"reasoning_tokens":null}
v1 f19a64b2 {"t":"R","started_at":"2025-11-24T02:49:41.998Z","id":"019ab3c4-5d6e-7f80-9a1b-2c3d4e5f6004","team_id":"01890a5d-ac96-774b-bcce-b302099a8057","key_id":"01890a5d-ac96-774b-bcce-b302099a8058","provider":"default","method":"POST","path":"/v1/chat/completions","idempotency_key":null,"sdk_retry_count":0,"client_ip":"203.0.113.7","user_agent":"\u00dcn\u00ef \"quoted\" \ud834\udd1e","outcome":"completed","status":200,"error_code":null,"streamed":true,"request_bytes":5000000000,"response_bytes":7,"ttfb_ms":1.5,"duration_ms":3.5,"provider_request_id":"req_\u00e9","model":"gpt-4o","prompt_tokens":1,"completion_tokens":2,"cached_tokens":null,"reasoning_tokens":null}
`;

const id = (call: number) => `019ab3c4-5d6e-7f80-9a1b-2c3d4e5f600${call}`;
const BEGIN = {
  started_at: '2025-11-24T02:49:41.998Z',
  team_id: TEAM,
  key_id: KEY,
  provider: 'default',
  method: 'POST',
  path: '/v1/chat/completions',
  idempotency_key: null,
  sdk_retry_count: 0,
  client_ip: '203.0.113.7',
  user_agent: 'Ünï "quoted" 𝄞',
};
const END = {
  outcome: 'completed',
  status: 200,
  error_code: null,
  streamed: true,
  request_bytes: 5_000_000_000,
  response_bytes: 7,
  ttfb_ms: 1.5,
  duration_ms: 2.5,
  provider_request_id: 'req_é',
};
const USAGE = {
  duration_ms: 3.5,
  model: 'gpt-4o',
  prompt_tokens: 1,
  completion_tokens: 2,
  cached_tokens: null,
  reasoning_tokens: null,
  // Unknown to version 0.1.0.
  cache_write_tokens: null,
  extra_usage: null,
};
const nulls = (values: object) => Object.fromEntries(Object.keys(values).map((name) => [name, null]));
const UNSEEN_END = { ...nulls(END), outcome: 'interrupted', streamed: false };

const LATER = [
  'cost_usd',
  'saved_usd',
  'price_id',
  'end_user',
  'session_id',
  'tags',
  'charge_usd',
  'charge_tokens',
  'limit_subject',
  'charge_rules',
  'limit_session',
  'altered',
  'call_id',
  'attempt',
  'error_cause',
  'provider_error_type',
  'provider_error_code',
  'cost_low_usd',
  'cost_high_usd',
  'output_limit',
  'input_limit',
  'subject',
] as const satisfies readonly (keyof LogRow)[];

async function recover(text: string): Promise<{ rows: LogRow[]; corrupt: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-journal-'));
  const path = join(folder, '00000001.log');
  await writeFile(path, text);
  const rows: LogRow[] = [];
  let corrupt = 0;
  for await (const batch of readDeadRows([path], (count) => (corrupt += count))) rows.push(...batch);
  await rm(folder, { recursive: true });
  // Journals of that version have no columns of later ones.
  for (const row of rows as Partial<LogRow>[]) {
    for (const name of LATER) {
      expect(row[name]).toBeNull();
      delete row[name];
    }
  }
  return { rows: rows.sort((a, b) => a.id.localeCompare(b.id)), corrupt };
}

never('recovers the journal of version 0.1.0', async () => {
  expect(await recover(WRITTEN_BY_0_1_0)).toEqual({
    corrupt: 0,
    rows: [
      { ...BEGIN, id: id(1), ...END, ...USAGE, usage_final: null, outcome: 'client_aborted' },
      {
        ...BEGIN,
        id: id(2),
        ...END,
        outcome: 'upstream_timeout',
        error_code: 'upstream_timeout',
        status: 504,
        streamed: false,
        ...nulls(USAGE),
        // Nobody has read what was billed.
        usage_final: false,
        duration_ms: 2.5,
      },
      { ...BEGIN, id: id(3), ...UNSEEN_END, ...nulls(USAGE), usage_final: false },
      { ...BEGIN, id: id(4), ...END, ...USAGE, usage_final: null },
    ],
  });
});

never('recovers records that lack a column of this version or have one that it does not know', async () => {
  const { user_agent: _, ...older } = BEGIN;
  const end = { ...END, provider_request_id: 'req_1' };
  const records = [
    { t: 'B', id: id(1), ...older, region: 'eu' },
    { t: 'E', id: id(1), ...end, cost: '0.1' },
    { t: 'X', id: id(2), ...BEGIN },
  ];
  expect(await recover(encodeLines(records.map((record) => JSON.stringify(record))).toString())).toEqual({
    // A type of record that this version does not know is reported like a damaged line.
    corrupt: 1,
    rows: [
      {
        ...BEGIN,
        user_agent: null,
        id: id(1),
        ...end,
        ...nulls(USAGE),
        usage_final: false,
        duration_ms: 2.5,
      },
    ],
  });
});

it('has the record of an Idempotency-Key in the start record and in a spilled row, and no other', async () => {
  const claim = Buffer.alloc(32, 0xfb).toString('base64url');
  const rows = [
    { ...emptyRow(), ...BEGIN, id: id(1), claim },
    { ...emptyRow(), ...BEGIN, id: id(2), claim },
    { ...emptyRow(), ...BEGIN, id: id(3) },
  ];
  const lines = [
    encodeRecord('B', rows[0]!),
    encodeRecord('E', rows[0]!),
    encodeRecord('R', rows[1]!),
    encodeRecord('B', rows[2]!),
  ];
  expect(lines.map((line) => line.includes('"claim"'))).toEqual([true, false, true, false]);
  // Whatever else stands there is no record's ID.
  const damaged = { t: 'B', id: id(4), ...BEGIN, user_agent: 'curl', claim: 'x' };
  const { rows: found, corrupt } = await recover(encodeLines([...lines, JSON.stringify(damaged)]).toString());
  expect(corrupt).toBe(0);
  expect(found.map(({ claim }) => claim)).toEqual([claim, claim, undefined, undefined]);
});
