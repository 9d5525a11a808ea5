/** Opcodes of frames (RFC 6455 5.2). */
export const CLOSE = 0x8;
const FIRST_CONTROL = 0x8;

/** What a frame's header says. */
export interface FrameHead {
  readonly opcode: number;
  /** The last frame of its message. */
  readonly fin: boolean;
  /** RSV1: with permessage-deflate, the message is compressed (RFC 7692 6). */
  readonly compressed: boolean;
}

/** Gets the frames of one direction in their order. */
export interface FrameSink {
  onFrame(head: FrameHead): void;
  /** A part of the frame's payload, a view of the chunk that it came in. Not called for masked frames. */
  onPayload(part: Buffer): void;
  onFrameEnd(): void;
}

/** The longest header: 2 bytes, 8 of length, 4 of mask. */
const MAX_HEADER = 14;
const MASKED = 0x80;

/**
 * Follows the frames in a copy of the bytes of one direction (RFC 6455 5.2), however they are cut into chunks. It changes and
 * delays nothing, and keeps no more than one header.
 */
export class FrameReader {
  private readonly header = Buffer.alloc(MAX_HEADER);
  /** Bytes of the next header that are here. */
  private filled = 0;
  /** Bytes of payload that are still to come. */
  private payloadLeft = 0;
  private head: FrameHead | null = null;
  private isMasked = false;
  /** The bytes are no frames; nothing more is read. */
  isBroken = false;
  /** Where in the last chunk the last complete frame ended; 0 if none did. */
  lastEnd = 0;

  constructor(private readonly sink: FrameSink) {}

  /** True if the next byte begins a frame, so that another frame may be inserted here. */
  get isBetweenFrames(): boolean {
    return !this.isBroken && this.head === null && this.filled === 0;
  }

  push(chunk: Buffer): void {
    this.lastEnd = 0;
    let at = 0;
    while (at < chunk.length && !this.isBroken) {
      if (this.head === null) at += this.readHeader(chunk, at);
      if (this.head === null) continue;
      const part = Math.min(this.payloadLeft, chunk.length - at);
      if (part > 0 && !this.isMasked) this.sink.onPayload(chunk.subarray(at, at + part));
      at += part;
      this.payloadLeft -= part;
      if (this.payloadLeft > 0) continue;
      this.head = null;
      this.lastEnd = at;
      this.sink.onFrameEnd();
    }
  }

  /** @returns bytes taken from the chunk */
  private readHeader(chunk: Buffer, at: number): number {
    const { header } = this;
    let taken = 0;
    let needed = this.headerLength();
    while (this.filled < needed && at + taken < chunk.length) {
      header[this.filled++] = chunk[at + taken++]!;
      if (this.filled === 2) needed = this.headerLength();
    }
    if (this.filled < needed) return taken;
    const first = header[0]!;
    const head = { opcode: first & 0x0f, fin: first >= 0x80, compressed: (first & 0x40) !== 0 };
    const length = this.payloadLength();
    // RFC 6455 5.5: control frames are short and not fragmented. RSV2 and RSV3 belong to no extension there is.
    const isControl = head.opcode >= FIRST_CONTROL;
    if ((first & 0x30) !== 0 || !Number.isSafeInteger(length) || (isControl && (length > 125 || !head.fin))) {
      this.isBroken = true;
      return taken;
    }
    this.isMasked = (header[1]! & MASKED) !== 0;
    this.payloadLeft = length;
    this.filled = 0;
    this.head = head;
    this.sink.onFrame(head);
    return taken;
  }

  private headerLength(): number {
    if (this.filled < 2) return 2;
    const second = this.header[1]!;
    const short = second & 0x7f;
    return 2 + (short === 126 ? 2 : short === 127 ? 8 : 0) + ((second & MASKED) === 0 ? 0 : 4);
  }

  private payloadLength(): number {
    const short = this.header[1]! & 0x7f;
    if (short === 126) return this.header.readUInt16BE(2);
    return short === 127 ? Number(this.header.readBigUInt64BE(2)) : short;
  }
}

/** True for frames that belong to a message: not ping, pong and close. */
export function isData({ opcode }: FrameHead): boolean {
  return opcode < FIRST_CONTROL;
}

/**
 * A close frame.
 *
 * @param code RFC 6455 7.4.1
 * @param masked as a client has to send it; a mask of zeros leaves the bytes as they are
 */
export function closeFrame(code: number, reason: string, masked: boolean): Buffer {
  const payload = Buffer.concat([Buffer.alloc(2), Buffer.from(reason)]);
  payload.writeUInt16BE(code);
  const header = [0x80 | CLOSE, payload.length | (masked ? MASKED : 0), ...(masked ? [0, 0, 0, 0] : [])];
  return Buffer.concat([Buffer.from(header), payload]);
}
