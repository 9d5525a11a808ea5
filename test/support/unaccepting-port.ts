import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { timePasses } from './eventually.js';

// Listens with the shortest queue there is and never accepts: its one thread sleeps for ever.
const CODE = `
  const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    require('node:fs').writeSync(1, String(server.address().port));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
`;

/** A port of this machine on which a connection is never established: its queue is full and stays so. */
export class UnacceptingPort {
  private constructor(
    readonly port: number,
    private readonly child: ChildProcess,
    private readonly fillers: Socket[],
  ) {}

  static async open(): Promise<UnacceptingPort> {
    const child = spawn(process.execPath, ['-e', CODE], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [text] = (await once(child.stdout, 'data')) as [Buffer];
    const port = Number(text.toString());
    const fillers: Socket[] = [];
    // How many a full queue still lets in differs by kernel: filled one by one until two in a row are left waiting.
    for (let waiting = 0; waiting < 2;) {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      fillers.push(socket);
      const connected = once(socket, 'connect');
      const given = timePasses(300, 'nothing reports that a connection will never be established');
      await Promise.race([connected, given]);
      // A busy machine may report the connection only after the time has passed.
      await new Promise(setImmediate);
      waiting = socket.connecting ? waiting + 1 : 0;
    }
    return new UnacceptingPort(port, child, fillers);
  }

  /** Connections of this process that wait to be established, which fill the queue. */
  get waiting(): number {
    return this.fillers.filter(({ connecting }) => connecting).length;
  }

  async close(): Promise<void> {
    for (const socket of this.fillers) socket.destroy();
    this.child.kill('SIGKILL');
    await once(this.child, 'exit');
  }
}
