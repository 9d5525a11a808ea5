import type { Socket } from 'node:net';

/** Reads HTTP/1.1 messages off a socket byte by byte, with no opinion on what is in them. */
export class RawReader {
  private buffer: Buffer = Buffer.alloc(0);
  /** What has arrived since somebody last read: joined once, however much of it there is. */
  private arrived: Buffer[] = [];
  private ended = false;
  private wake: () => void = () => {};
  /** Bytes of the current body seen so far, framing included. */
  bodyReceived = 0;

  constructor(socket: Socket) {
    socket.on('data', (data) => {
      this.arrived.push(data);
      this.wake();
    });
    const end = () => {
      this.ended = true;
      this.wake();
    };
    socket.on('end', end);
    socket.on('close', end);
  }

  /** Everything not yet taken. */
  get rest(): Buffer {
    this.join();
    return this.buffer;
  }

  /** Request or status line and headers, without the empty line; rejects when the connection ends first. */
  async head(): Promise<string> {
    for (;;) {
      this.join();
      const at = this.buffer.indexOf('\r\n\r\n');
      if (at !== -1) {
        const head = this.buffer.toString('latin1', 0, at);
        this.buffer = this.buffer.subarray(at + 4);
        this.bodyReceived = 0;
        return head;
      }
      await this.more();
    }
  }

  /** The body that these headers announce; `toEnd`: everything up to the end of the connection when they do not. */
  async body(headers: [string, string][], toEnd = false): Promise<{ bytes: Buffer; framed: Buffer }> {
    const value = (name: string) => headers.find(([key]) => key.toLowerCase() === name)?.[1];
    if (value('transfer-encoding') !== undefined) return this.chunked();
    const length = value('content-length');
    if (length === undefined && toEnd) {
      while (!this.ended) await this.more().catch(() => {});
      return { bytes: this.rest, framed: this.rest };
    }
    const bytes = await this.take(Number(length ?? 0));
    return { bytes, framed: bytes };
  }

  /** Exactly this many bytes; rejects when the connection ends first. */
  async take(count: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let missing = count;
    while (missing > 0) {
      this.join();
      if (this.buffer.length === 0) {
        await this.more();
        continue;
      }
      const part = this.buffer.subarray(0, missing);
      this.buffer = this.buffer.subarray(part.length);
      this.bodyReceived += part.length;
      missing -= part.length;
      parts.push(part);
    }
    return Buffer.concat(parts);
  }

  private async line(): Promise<Buffer> {
    for (;;) {
      this.join();
      const at = this.buffer.indexOf('\r\n');
      if (at !== -1) return this.take(at + 2);
      await this.more();
    }
  }

  private async chunked(): Promise<{ bytes: Buffer; framed: Buffer }> {
    const bytes: Buffer[] = [];
    const framed: Buffer[] = [];
    for (;;) {
      const size = await this.line();
      framed.push(size);
      const length = parseInt(size.toString('latin1'), 16);
      if (Number.isNaN(length)) throw new Error(`not a chunk size: ${size.toString('latin1')}`);
      if (length === 0) break;
      const data = await this.take(length);
      const end = await this.take(2);
      bytes.push(data);
      framed.push(data, end);
    }
    for (;;) {
      const line = await this.line();
      framed.push(line);
      if (line.length === 2) return { bytes: Buffer.concat(bytes), framed: Buffer.concat(framed) };
    }
  }

  private join(): void {
    if (this.arrived.length === 0) return;
    const isAlone = this.buffer.length === 0 && this.arrived.length === 1;
    this.buffer = isAlone ? this.arrived[0]! : Buffer.concat([this.buffer, ...this.arrived]);
    this.arrived = [];
  }

  private more(): Promise<void> {
    if (this.ended) return Promise.reject(new Error('the connection ended'));
    return new Promise((resolve) => (this.wake = resolve));
  }
}
