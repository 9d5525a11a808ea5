import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { DataSource } from 'typeorm';
import type { Settings } from '../../src/config/settings.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { IdempotencyRecords } from '../../src/idempotency/idempotency-records.js';
import { ReaderPool } from '../../src/requests/reader-pool.js';

/** A message of Postgres's protocol (its documentation, Message Formats): type, length with itself, content. */
function message(type: string, content: Buffer | string): Buffer {
  const head = Buffer.from(`${type}\0\0\0\0`);
  const bytes = Buffer.from(content as string);
  head.writeInt32BE(bytes.length + 4, 1);
  return Buffer.concat([head, bytes]);
}

/** The end of a log-in and the end of the connection, as they come when an operator ends it in that instant. */
const WELCOME_AND_GOODBYE = Buffer.concat([
  message('R', Buffer.alloc(4)),
  message('Z', 'I'),
  message('E', 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'),
]);

const BROKEN = /^terminating connection|^Connection terminated|is not queryable$/;

let server: Server;
let url: string;
beforeAll(async () => {
  server = createServer((socket) => {
    socket.on('error', () => {}).once('data', () => socket.end(WELCOME_AND_GOODBYE));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `postgres://x@127.0.0.1:${(server.address() as AddressInfo).port}/x`;
});
afterAll(() => new Promise((closed) => server.close(closed)));

describe('a connection that is ended in the instant in which it was made fails its query, not the process', () => {
  it('in the pool of the services', async () => {
    const dataSource = new DataSource(dataSourceOptions(url, { applicationName: 'test', poolSize: 1 }));
    await expect(dataSource.initialize()).rejects.toThrow(BROKEN);
  });

  it('in the pools of the readers', async () => {
    const pools = new ReaderPool({ databaseUrl: url } as Settings);
    await expect(pools.queries.query('SELECT 1')).rejects.toThrow(BROKEN);
    await expect(pools.exports.connect().then((client) => client.query('SELECT 1'))).rejects.toThrow(BROKEN);
  });

  it('in the pool of the records of Idempotency-Key', async () => {
    const records = new IdempotencyRecords({ databaseUrl: url } as Settings);
    await expect(records.states([])).rejects.toThrow(BROKEN);
  });
});
