import type { IncomingMessage } from 'node:http';

/**
 * A request body handed on as it arrives, one chunk at a time: the client is read from only while the provider takes.
 * An iterable and not the request itself, because undici would give a short chunked body a Content-Length; not the
 * request's own iterator, because that one cannot be let go while it waits, and would keep the rest from being drained.
 */
export class StreamedBody implements AsyncIterableIterator<Buffer, undefined> {
  private readonly chunks: Buffer[] = [];
  private waiting: ((result: IteratorResult<Buffer, undefined>) => void) | null = null;
  private ended = false;
  private released = false;

  /**
   * @param onBytes told of each chunk as it arrives
   * @param onWaiting told whether the client is the one waited for
   * @param onArrived told when the body has been handed on to its end
   */
  constructor(
    private readonly req: IncomingMessage,
    private readonly onBytes: (chunk: Buffer) => void,
    private readonly onWaiting: (forClient: boolean) => void,
    private readonly onArrived: () => void = () => {},
  ) {
    req.on('data', this.onData);
    req.on('end', this.onWhole);
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
      this.onWaiting(true);
      this.req.resume();
    });
  }

  /** Called by undici when it takes no more: the provider has answered already or is gone. */
  return(): Promise<IteratorResult<Buffer, undefined>> {
    this.letGo();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Lets go of the request; what is still to come is no longer ours. */
  letGo(): void {
    if (this.released) return;
    this.released = true;
    this.req.off('data', this.onData);
    this.req.off('end', this.onWhole);
    this.chunks.length = 0;
    this.onEnd();
  }

  private readonly onData = (chunk: Buffer): void => {
    this.onBytes(chunk);
    if (this.released) return;
    const { waiting } = this;
    this.waiting = null;
    this.onWaiting(false);
    this.req.pause();
    if (waiting !== null) waiting({ done: false, value: chunk });
    else this.chunks.push(chunk);
  };

  private readonly onWhole = (): void => {
    this.onArrived();
    this.onEnd();
  };

  private readonly onEnd = (): void => {
    this.ended = true;
    this.onWaiting(false);
    this.waiting?.({ done: true, value: undefined });
    this.waiting = null;
  };
}
