import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { answer, chunk, RawProvider, STREAM_HEAD } from '../support/raw-provider.js';

/*
 * A replica of a version without usage_final beside those of this one. It finds rows with tokens and without a cost, and
 * writes one with this statement. Never change it.
 */
const UPDATE_OF_OLDER_VERSION = `
  UPDATE request_log AS r
  SET cost_usd = u.cost, price_id = u.price,
      (recorded_at, repaired_at) = (SELECT t, t FROM date_trunc('milliseconds', clock_timestamp()) AS t)
  FROM unnest($1::timestamptz[], $2::uuid[], $3::timestamptz[], $4::numeric(18,9)[], $5::uuid[])
    AS u (started_at, id, recorded_at, cost, price)
  WHERE r.started_at = u.started_at AND r.id = u.id AND r.recorded_at = u.recorded_at
    AND r.started_at BETWEEN $6::timestamptz AND $7::timestamptz`;
const PRICE = '01a20388-ef5e-77be-a864-984e76b21c9c';

const MESSAGE = { model: 'm', usage: { input_tokens: 1_000, output_tokens: 1 } };
const START = `data: ${JSON.stringify({ type: 'message_start', message: MESSAGE })}\n\n`;

let gateway: TestGateway;
let provider: RawProvider;
/** The provider breaks the stream off. */
let isCut = true;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    if (!isCut)
      return void socket.write(answer('200 OK', ['Content-Type: application/json'], JSON.stringify(MESSAGE)));
    socket.write(STREAM_HEAD + chunk(START).toString(), () => socket.destroy());
  });
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

async function call(): Promise<string> {
  const response = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: '{"model":"m","max_tokens":5}',
  });
  await response.arrayBuffer().catch(() => {});
  const id = response.headers.get('x-gateway-request-id')!;
  await gateway.row(id);
  return id;
}

/** @returns what the row has then */
async function repairAsBefore(id: string): Promise<unknown> {
  const at = 'SELECT started_at, recorded_at FROM request_log WHERE id = $1';
  const [row] = await gateway.database.query<{ started_at: Date; recorded_at: Date }>(at, [id]);
  const { started_at: startedAt, recorded_at: recordedAt } = row!;
  const values = [[startedAt], [id], [recordedAt], ['0.001010000'], [PRICE], startedAt, startedAt];
  await gateway.database.query(UPDATE_OF_OLDER_VERSION, values);
  const [after] = await gateway.database.query(
    'SELECT usage_final, cost_usd, price_id, repaired_at IS NOT NULL AS repaired FROM request_log WHERE id = $1',
    [id],
  );
  return after;
}

const PRICED = { cost_usd: '0.001010000', price_id: PRICE, repaired: true };

never('sets no cost of a call whose usage is not final', async () => {
  const id = await call();
  const unknown = { usage_final: false, cost_usd: null, price_id: null, repaired: true };
  expect(await repairAsBefore(id)).toEqual(unknown);
});

it('sets that of a final one, of a row from before, and of what the responses of a WebSocket cost', async () => {
  isCut = false;
  const id = await call();
  expect(await repairAsBefore(id)).toEqual({ usage_final: true, ...PRICED });
  for (const [columns, usage_final] of [
    ['usage_final = NULL', null],
    ['usage_final = false, status = 101', false],
  ] as const) {
    await gateway.database.query(
      `UPDATE request_log SET ${columns}, cost_usd = NULL, price_id = NULL WHERE id = $1`,
      [id],
    );
    expect(await repairAsBefore(id)).toEqual({ usage_final, ...PRICED });
  }
});

it('costs the INSERT of rows nothing, and is there for every day', async () => {
  await gateway.database.query(
    `SELECT request_log_create_partition('request_log_20990101', '2099-01-01Z', '2099-01-02Z')`,
  );
  const days = await gateway.database.query<{ triggers: string[] }>(`
    SELECT array_agg(pg_get_triggerdef(t.oid)) FILTER (WHERE t.oid IS NOT NULL) AS triggers
    FROM pg_inherits i LEFT JOIN pg_trigger t ON t.tgrelid = i.inhrelid
    WHERE i.inhparent = 'request_log'::regclass GROUP BY i.inhrelid`);
  expect(days.length).toBeGreaterThan(1);
  const onUpdate: unknown = expect.stringMatching(
    /^CREATE TRIGGER unknown_cost BEFORE UPDATE OF cost_usd ON /,
  );
  for (const { triggers } of days) expect(triggers).toEqual([onUpdate]);
});
