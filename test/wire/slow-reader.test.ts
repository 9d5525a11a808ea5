import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { eventually, timePasses } from '../support/eventually.js';
import type { LogRowView } from '../support/gateway.js';
import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import type { ReceivedRequest } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start({ CLIENT_IDLE_TIMEOUT_MS: '3000' });
});
afterAll(() => wire.stop());

const CALL = 'POST /v1/chat/completions';
const BLOCK = randomBytes(1_000_000);

/** Writes blocks for as long as they are taken; tells how many bytes were. */
function pour(req: ReceivedRequest, blocks: number): () => number {
  req.socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${blocks * BLOCK.length}\r\n\r\n`);
  let poured = 0;
  const more = () => {
    while (poured < blocks) {
      poured++;
      if (!req.socket.write(BLOCK)) return void req.socket.once('drain', more);
    }
  };
  more();
  return () => poured * BLOCK.length - req.socket.writableLength;
}

never('a client that reads nothing is cut, and until then the provider is held back', async () => {
  let poured = () => 0;
  wire.provider.script = async (req) => {
    await req.body;
    poured = pour(req, 1_000);
    await req.closed;
  };
  const client = await wire.connect();
  client.socket.pause();
  client.send(request(CALL, [wire.auth], '{}'));
  await new Promise<void>((seen) => {
    const { script } = wire.provider;
    wire.provider.script = async (req) => {
      seen();
      await script(req);
    };
  });
  await wire.provider.requests.at(-1)!.closed;
  // What the buffers of two connections hold: a fraction of what the provider had to give.
  expect(poured()).toBeLessThan(50_000_000);
  client.socket.resume();
  await client.closed;
  const row = await eventually(
    async () => (await wire.gateway.database.query<LogRowView>('SELECT * FROM request_log'))[0],
  );
  expect(row).toMatchObject({ outcome: 'client_error', status: 200, error_code: 'request_timeout' });
});

it('a client that reads slowly is served to the end', async () => {
  const BLOCKS = 32;
  // Twenty times the pauses of the reader, which a busy machine makes longer.
  const patient = await Wire.start({ CLIENT_IDLE_TIMEOUT_MS: '8000' });
  patient.provider.script = async (req) => {
    await req.body;
    pour(req, BLOCKS);
  };
  const socket = connect(patient.gateway.port, '127.0.0.1');
  const chunks: Buffer[] = [];
  let read = 0;
  let enough = 0;
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    chunks.push(chunk);
    read += chunk.length;
    if (read >= enough) socket.pause();
  });
  socket.write(request(CALL, [patient.auth], '{}'));
  // Longer in all than the idle time, and never idle for so long.
  while (read < BLOCKS * BLOCK.length && !socket.destroyed) {
    await timePasses(400, 'idle, but not for too long');
    enough = Math.min(read + 1_500_000, BLOCKS * BLOCK.length);
    socket.resume();
    await eventually(() => read >= enough || socket.destroyed);
  }
  socket.destroy();
  const received = Buffer.concat(chunks);
  const headEnd = received.indexOf('\r\n\r\n') + 4;
  const bytes = received.subarray(headEnd);
  const [, id] = /^x-gateway-request-id: (\S+)/im.exec(received.toString('latin1', 0, headEnd))!;
  for (let i = 0; i < BLOCKS; i++) {
    expect(bytes.subarray(i * BLOCK.length, (i + 1) * BLOCK.length).equals(BLOCK)).toBe(true);
  }
  expect(await patient.gateway.row(id!)).toMatchObject({ outcome: 'completed' });
  await patient.stop();
});
