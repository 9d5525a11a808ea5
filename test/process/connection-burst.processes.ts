import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterFile } from '../support/after-file.js';
import { eventually } from '../support/eventually.js';

const CLIENTS = 1_500;
const SOMAXCONN = '/proc/sys/net/core/somaxconn';

// As the gateway listens, and accepts nothing: its one thread sleeps for ever, as if it had much to do.
const CODE = `
  const { listen } = await import(${JSON.stringify(pathToFileURL(resolve(__dirname, '../../.test-build/src/runtime/listen.js')).href)});
  const server = (await import('node:http')).createServer();
  await listen(server, { host: '127.0.0.1' }, 'PORT', 0);
  (await import('node:fs')).writeSync(1, String(server.address().port));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
`;

let child: ChildProcess | undefined;
const sockets: Socket[] = [];
afterFile(() => {
  for (const socket of sockets) socket.destroy();
  child?.kill('SIGKILL');
  return Promise.resolve();
});

/** A system with a shorter queue cannot have more. */
const isAllowed = existsSync(SOMAXCONN) && Number(readFileSync(SOMAXCONN, 'utf8')) > CLIENTS;

(isAllowed ? it : it.skip)(
  'takes 1,500 connections at once, also while it has no time to accept them',
  async () => {
    child = spawn(process.execPath, ['--input-type=module', '-e', CODE], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [port] = (await once(child.stdout!, 'data')) as [Buffer];
    let connected = 0;
    const errors: unknown[] = [];
    for (let i = 0; i < CLIENTS; i++) {
      const socket = connect(Number(port.toString()), '127.0.0.1', () => connected++);
      sockets.push(socket.on('error', (error) => errors.push(error)));
    }
    await eventually(() => connected + errors.length === CLIENTS);
    expect(errors).toEqual([]);
  },
);
