import type { Call } from '../call.js';

/** Receives a body, and is notified of what happens to it. */
export interface BodyReader {
  /** A chunk has arrived. */
  onBytes(chunk: Buffer): void;
  /** It is the client that is waited for, or no longer. */
  onWaiting(forClient: boolean): void;
  /** The first chunk has arrived, or the end of a body that has none. */
  onBegun?(): void;
  /** The body has been handed on to its end. */
  onArrived?(): void;
  /** Node's parser failed in the body while nothing of the call was forwarded; nothing more comes. */
  onBroken(error: Error): void;
}

/**
 * A request body handed on as it arrives, one chunk at a time: the client is read from only while the provider takes.
 * An iterable and not the request itself, because undici would give a short chunked body a Content-Length; not the
 * request's own iterator, because that one cannot be released while it waits, and would keep the rest from being drained.
 */
export class StreamedBody implements AsyncIterableIterator<Buffer, undefined> {
  private readonly chunks: Buffer[] = [];
  private waiting: ((result: IteratorResult<Buffer, undefined>) => void) | null = null;
  private begun = false;
  private ended = false;
  private released = false;

  /** @param prefix chunks that were read before; start() must be called for them */
  constructor(
    private readonly call: Call,
    private reader: BodyReader,
    prefix: readonly Buffer[] = [],
  ) {
    this.chunks.push(...prefix);
    const { req, bodyError } = call;
    req.on('data', this.onData);
    req.on('end', this.onWhole);
    req.on('bodyError', this.onBroken);
    if (bodyError !== null) this.onBroken(bodyError);
  }

  /** Hands on from here what was read before. */
  start(): void {
    this.begin();
  }

  /** Nothing was handed on yet, and nothing will be to this reader. */
  passTo(reader: BodyReader): void {
    this.reader = reader;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Buffer, undefined>> {
    const chunk = this.chunks.shift();
    if (chunk !== undefined) return Promise.resolve({ done: false, value: chunk });
    if (this.ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.waiting = resolve;
      this.reader.onWaiting(true);
      this.call.req.resume();
    });
  }

  /** Called by undici when it takes no more: the provider has responded already or is gone. */
  return(): Promise<IteratorResult<Buffer, undefined>> {
    this.detach();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Releases the request: the rest of its body is not read here any more. */
  detach(): void {
    if (this.released) return;
    this.released = true;
    const { req } = this.call;
    req.off('data', this.onData);
    req.off('end', this.onWhole);
    req.off('bodyError', this.onBroken);
    this.chunks.length = 0;
    this.onEnd();
  }

  private readonly onData = (chunk: Buffer): void => {
    this.reader.onBytes(chunk);
    if (this.released) return;
    const { waiting } = this;
    this.waiting = null;
    this.reader.onWaiting(false);
    this.call.req.pause();
    if (waiting !== null) waiting({ done: false, value: chunk });
    else this.chunks.push(chunk);
    this.begin();
  };

  private readonly onWhole = (): void => {
    this.begin();
    this.reader.onArrived?.();
    this.onEnd();
  };

  private readonly onBroken = (error: Error): void => {
    this.detach();
    this.reader.onBroken(error);
  };

  private readonly onEnd = (): void => {
    this.ended = true;
    this.reader.onWaiting(false);
    this.waiting?.({ done: true, value: undefined });
    this.waiting = null;
  };

  private begin(): void {
    if (this.begun) return;
    this.begun = true;
    this.reader.onBegun?.();
  }
}
