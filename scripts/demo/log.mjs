// What the request log remembers of the calls, as an operator reads it.
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { table } from '../../dist/src/cli/table.js';

const PATIENCE_MS = 10_000;

/** A table of the newest rows, oldest first, once there are as many as expected. */
export async function logTable(gatewayUrl, adminTokenFile, expected) {
  const token = (await readFile(adminTokenFile, 'utf8')).trim();
  const rows = await rowsOf(gatewayUrl, token, expected);
  const head = [
    'STARTED',
    'CALL',
    'STATUS',
    'OUTCOME',
    'STREAMED',
    'MODEL',
    'TOKENS IN+OUT',
    'BYTES IN+OUT',
    'TTFB',
    'TOTAL',
  ];
  return table(head, rows.reverse().map(cells));
}

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

function cells(row) {
  const ms = (value) => value && `${Math.round(value)} ms`;
  return [
    row.started_at.slice(11, 23),
    `${row.method} ${row.path}`,
    row.status,
    row.outcome,
    row.streamed ? 'yes' : 'no',
    row.model,
    row.prompt_tokens === null ? null : `${row.prompt_tokens}+${row.completion_tokens}`,
    `${row.request_bytes}+${row.response_bytes}`,
    ms(row.ttfb_ms),
    ms(row.duration_ms),
  ];
}
