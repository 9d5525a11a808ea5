import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { COLUMN_NAMES } from '../../src/request-log/columns.js';

/** Names that mean something else elsewhere: other tables, request parameters, the providers' JSON. */
const SHARED = new Set([
  'started_at',
  'recorded_at',
  'team_id',
  'key_id',
  'client_ip',
  'cost_usd',
  'request_bytes',
  'usage_final',
  'cost_low_usd',
  'cost_high_usd',
  'saved_usd',
  'end_user',
  'session_id',
  'provider_request_id',
  'duration_ms',
  'call_id',
  'provider_request_id',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'cache_write_tokens',
]);

const src = join(__dirname, '../../src');
// The types of the client are generated.
const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
  (path) => path.endsWith('.ts') && path !== join('client', 'schema.ts'),
);
const sources = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]));

// columns.ts, log-row.ts, and at most two files that produce or use the value. Everything else is derived.
it('names a column of the request log in at most four files', () => {
  const names = COLUMN_NAMES.filter((name) => name.includes('_') && !SHARED.has(name));
  expect(names.length).toBeGreaterThan(5);
  const scattered = names
    .map((name) => {
      const word = new RegExp(`\\b${name}\\b`);
      return [name, ...files.filter((file) => word.test(sources.get(file)!))];
    })
    .filter(([, ...named]) => named.length > 4);
  expect(scattered).toEqual([]);
});
