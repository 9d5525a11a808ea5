import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { timePasses } from './eventually.js';

const BLOCK = Buffer.alloc(262_144, 'postern ');
/** A reader that takes this much and then pauses for a moment: some 100 MB/s, a fraction of what either side could do. */
const GULP = 1_048_576;
const PAUSE_MS = 8;

/** Resident memory of a process in bytes; elsewhere than on Linux from ps(1), which is a process for each look. */
export function residentBytes(pid: number): number {
  if (process.platform === 'linux') {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)![1]) * 1024;
  }
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) * 1024;
}

/** Writes this many bytes, as fast as they are taken. */
export async function pour(socket: Socket, bytes: number): Promise<void> {
  for (let left = bytes; left > 0; left -= BLOCK.length) {
    if (socket.destroyed) throw new Error('the connection closed');
    if (!socket.write(left < BLOCK.length ? BLOCK.subarray(0, left) : BLOCK)) {
      await new Promise((drained) => socket.once('drain', drained));
    }
  }
}

/** Reads this many bytes slowly, keeping none; rejects when the connection ends first. */
export async function sip(socket: Socket, bytes: number): Promise<void> {
  let taken = 0;
  let gulp = 0;
  await new Promise<void>((resolve, reject) => {
    const ended = () => reject(new Error(`the connection ended after ${taken} of ${bytes} bytes`));
    const take = (chunk: Buffer) => {
      taken += chunk.length;
      gulp += chunk.length;
      if (taken >= bytes) {
        socket.off('data', take).off('close', ended);
        resolve();
      } else if (gulp >= GULP) {
        gulp = 0;
        socket.pause();
        void timePasses(PAUSE_MS, 'the pace of the reader').then(() => socket.resume());
      }
    };
    socket.on('data', take).on('close', ended).resume();
  });
}

/** Reads up to the end of a head, and puts back what follows. */
export async function readHead(socket: Socket): Promise<string> {
  let bytes = Buffer.alloc(0);
  for (;;) {
    const chunk = await new Promise<Buffer>((resolve, reject) => {
      socket.once('data', resolve).once('close', () => reject(new Error('the connection closed')));
      socket.resume();
    });
    socket.pause();
    bytes = Buffer.concat([bytes, chunk]);
    const at = bytes.indexOf('\r\n\r\n');
    if (at === -1) continue;
    if (bytes.length > at + 4) socket.unshift(bytes.subarray(at + 4));
    return bytes.toString('latin1', 0, at);
  }
}

/** A provider that takes an upload slowly, or pours an answer of the size that `X-Pour` asks for. */
export async function startBulkProvider(): Promise<{ url: string; server: Server }> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    void serve(socket).catch(() => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

async function serve(socket: Socket): Promise<void> {
  const head = await readHead(socket);
  const wanted = Number(/^x-pour: (\d+)/im.exec(head)?.[1] ?? 0);
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
  if (length > 0) await sip(socket, length);
  socket.write(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${wanted}\r\n\r\n`);
  await pour(socket, wanted);
  socket.end();
}

export async function dial(url: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
  await new Promise((connected) => socket.once('connect', connected));
  return socket;
}
