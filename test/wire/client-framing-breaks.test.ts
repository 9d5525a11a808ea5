import { request } from '../support/raw-client.js';
import { eventually } from '../support/eventually.js';
import type { LogRowView } from '../support/gateway.js';
import type { ReceivedRequest } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());
beforeEach(() => wire.gateway.database.query('TRUNCATE request_log'));

it.each([
  ['a chunk size that is none', 'zz\r\n'],
  ['a chunk that is longer than its size', '1\r\nab\r\n'],
  ['a negative chunk size', '-1\r\na\r\n'],
])(
  '%s in an upload that is being forwarded ends the call on both sides as the client’s fault',
  async (_, bytes) => {
    const arrived = new Promise<ReceivedRequest>((seen) => {
      wire.provider.script = async (req) => {
        seen(req);
        await req.closed;
      };
    });
    const client = await wire.connect();
    client.send(
      request('POST /v1/chat/completions', [wire.auth, 'Transfer-Encoding: chunked'], '1\r\na\r\n'),
    );
    const req = await arrived;
    client.send(bytes);
    await Promise.all([req.closed, client.closed]);
    const row = await eventually(
      async () =>
        (
          await wire.gateway.database.query<LogRowView>(
            "SELECT * FROM request_log WHERE outcome <> 'completed'",
          )
        )[0],
    );
    expect(row).toMatchObject({ outcome: 'client_error', error_code: 'invalid_request', status: null });
    await wire.expectSound(1);
  },
);
