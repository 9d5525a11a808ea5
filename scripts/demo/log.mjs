// The rows of the calls in the request log, as an operator reads them.
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { table } from '../../dist/src/cli/table.js';

const PATIENCE_MS = 10_000;

/** A table of the newest rows, oldest first, once there are as many as expected. */
export async function logTable(gatewayUrl, adminTokenFile, expected) {
  const token = (await readFile(adminTokenFile, 'utf8')).trim();
  const rows = await rowsOf(gatewayUrl, token, expected);
  const options = { width: Infinity, colour: false };
  return table(COLUMNS, rows.reverse(), options).text;
}

const ms = (value) => value && `${Math.round(value)} ms`;

const COLUMNS = [
  { head: 'STARTED', cell: (row) => row.started_at.slice(11, 23) },
  { head: 'CALL', cell: (row) => `${row.method} ${row.path}` },
  { head: 'STATUS', cell: (row) => row.status },
  { head: 'OUTCOME', cell: (row) => row.outcome },
  { head: 'STREAMED', cell: (row) => row.streamed },
  { head: 'MODEL', cell: (row) => row.model },
  {
    head: 'TOKENS IN+OUT',
    cell: (row) => (row.prompt_tokens === null ? null : `${row.prompt_tokens}+${row.completion_tokens}`),
  },
  { head: 'BYTES IN+OUT', cell: (row) => `${row.request_bytes}+${row.response_bytes}` },
  { head: 'TTFB', cell: (row) => ms(row.ttfb_ms) },
  { head: 'TOTAL', cell: (row) => ms(row.duration_ms) },
];

async function rowsOf(gatewayUrl, token, expected) {
  for (const deadline = Date.now() + PATIENCE_MS; ; await sleep(50)) {
    const response = await fetch(`${gatewayUrl}/admin/v1/requests`, {
      headers: { authorization: `Bearer ${token}` },
    });
    if (!response.ok) throw new Error(`the admin API answered ${response.status}: ${await response.text()}`);
    const { data } = await response.json();
    if (data.length >= expected) return data;
    if (Date.now() > deadline)
      throw new Error(`${data.length} of ${expected} rows are in the log after 10 s`);
  }
}
