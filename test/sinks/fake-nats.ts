import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterFile } from '../support/after-file.js';

const STREAM = 'POSTERN';
const DAY_NANOSECONDS = 86_400_000_000_000;

export interface StoredMessage {
  id: string;
  body: string;
}

/** What happens to a published message. `lost`: the connection breaks before it is stored; `unconfirmed`: after that. */
export type Outcome = 'stored' | 'lost' | 'unconfirmed' | { error: { code: number; description: string } };

const open = new Set<FakeNats>();
afterFile(async () => {
  await Promise.all([...open].map((server) => server.close()));
});

/** The protocol of NATS, as far as a sink uses it, with one stream. */
export class FakeNats {
  readonly stored: StoredMessage[] = [];
  /** Every ID that was published, in order. */
  readonly published: string[] = [];
  /** False: as when the duplicate window is over. */
  remembersIds = true;
  /** Of the next message. */
  outcome: (message: StoredMessage) => Outcome = () => 'stored';
  private readonly sockets = new Set<Socket>();
  private server: Server | null = null;

  async listen(): Promise<this> {
    this.server = createServer((socket) => this.serve(socket));
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    open.add(this);
    return this;
  }

  async close(): Promise<void> {
    open.delete(this);
    for (const socket of this.sockets) socket.destroy();
    const { server } = this;
    this.server = null;
    if (server !== null) await new Promise((closed) => server.close(closed));
  }

  get url(): string {
    return `nats://127.0.0.1:${(this.server!.address() as AddressInfo).port}`;
  }

  get rows(): { id: string }[] {
    return this.stored.flatMap(({ body }) =>
      body.split('\n').map((line) => JSON.parse(line) as { id: string }),
    );
  }

  get ids(): string[] {
    return this.rows.map(({ id }) => id).sort();
  }

  private serve(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('close', () => this.sockets.delete(socket)).on('error', () => {});
    const info = {
      server_id: 'FAKE',
      version: '2.15.0',
      proto: 1,
      headers: true,
      max_payload: 1_048_576,
      jetstream: true,
      client_id: 1,
    };
    socket.write(`INFO ${JSON.stringify(info)}\r\n`);
    let inbox = '';
    let buffer = Buffer.alloc(0);
    const reply = (to: string, value: object) => {
      const text = JSON.stringify(value);
      socket.write(`MSG ${to} ${inbox} ${Buffer.byteLength(text)}\r\n${text}\r\n`);
    };
    socket.on('data', (chunk) => {
      buffer = Buffer.concat([buffer, chunk]);
      for (;;) {
        const end = buffer.indexOf('\r\n');
        if (end === -1) return;
        const [verb, ...words] = buffer.toString('latin1', 0, end).split(' ');
        let next = end + 2;
        if (verb === 'PING') socket.write('PONG\r\n');
        // The client has one subscription, for replies.
        else if (verb === 'SUB') inbox = words.at(-1)!;
        else if (verb === 'PUB' || verb === 'HPUB') {
          const size = Number(words.at(-1));
          if (buffer.length < next + size + 2) return;
          const headers = verb === 'HPUB' ? Number(words[2]) : 0;
          const [subject, to] = words as [string, string];
          const head = buffer.toString('latin1', next, next + headers);
          const body = buffer.toString('utf8', next + headers, next + size);
          if (subject.startsWith('$JS.API.')) reply(to, this.api(subject.slice(8)));
          else this.publish(socket, head, body, (value) => reply(to, value));
          next += size + 2;
        }
        buffer = buffer.subarray(next);
      }
    });
  }

  private api(subject: string): object {
    const config = { name: STREAM, subjects: ['postern.requests'], duplicate_window: DAY_NANOSECONDS };
    if (subject === 'STREAM.NAMES') return { total: 1, offset: 0, limit: 1024, streams: [STREAM] };
    if (subject === `STREAM.INFO.${STREAM}`) return { config, state: { messages: this.stored.length } };
    if (subject !== `STREAM.MSG.GET.${STREAM}`) return {};
    const last = this.stored.at(-1);
    if (last === undefined) return { error: { code: 404, err_code: 10037, description: 'no message found' } };
    const hdrs = Buffer.from(`NATS/1.0\r\nNats-Msg-Id: ${last.id}\r\n\r\n`).toString('base64');
    return {
      message: { subject: 'postern.requests', seq: this.stored.length, hdrs, time: '2030-01-01T00:00:00Z' },
    };
  }

  private publish(socket: Socket, head: string, body: string, reply: (value: object) => void): void {
    const message = { id: /^Nats-Msg-Id: (.*)\r$/m.exec(head)![1]!, body };
    this.published.push(message.id);
    const outcome = this.outcome(message);
    if (typeof outcome === 'object') return reply(outcome);
    if (outcome === 'lost') return void socket.destroy();
    const isDuplicate = this.remembersIds && this.stored.some(({ id }) => id === message.id);
    if (!isDuplicate) this.stored.push(message);
    if (outcome === 'unconfirmed') return void socket.destroy();
    reply({ stream: STREAM, seq: this.stored.length, ...(isDuplicate && { duplicate: true }) });
  }
}
