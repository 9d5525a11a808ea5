import type { Socket } from 'node:net';
import type { Outcome } from '../../request-log/outcome.js';
import type { CallRecord } from '../../request-log/call-record.js';
import { closeLingering } from '../http/lingering-close.js';
import type { ConnectionUsage } from './connection-usage.js';
import { CLOSE, closeFrame, FrameReader } from './frame-reader.js';
import { patience } from '../../platform/patience.js';

/** Status codes of close frames (RFC 6455 7.4.1). */
export const GOING_AWAY = 1001;
export const POLICY_VIOLATION = 1008;
export const INTERNAL_ERROR = 1011;

/** How a WebSocket ended. */
export interface SessionEnd {
  readonly outcome: Outcome;
  readonly errorCode: string | null;
}

/** A frame that has begun may take this long to end before the connection is cut in the middle of it. */
const FRAME = patience('the end of a frame', 1_000);

/**
 * Passes bytes between the client and the provider of one WebSocket, both ways and unchanged, until either side ends. A side
 * that does not read stops the other one from being read.
 */
export class WebSocketSession {
  private end: SessionEnd | null = null;
  private clientCloseSeen = false;
  private readonly clientFrames = new FrameReader({
    onFrame: ({ opcode }) => {
      if (opcode === CLOSE) this.clientCloseSeen = true;
    },
    onPayload: () => {},
    onFrameEnd: () => {},
  });
  private readonly serverFrames: FrameReader;
  /** A close frame for the client that waits for the end of a frame. */
  private pending: { frame: Buffer; timer: NodeJS.Timeout } | null = null;
  /** When the provider sent something last (monotonic ms). */
  providerSentAt = performance.now();

  /** @param onEnd called once, before the sockets are closed */
  constructor(
    private readonly client: Socket,
    private readonly provider: Socket,
    private readonly record: CallRecord,
    private readonly usage: ConnectionUsage,
    private readonly onEnd: (end: SessionEnd) => void,
  ) {
    this.serverFrames = new FrameReader(usage);
    provider.on('error', () => {});
    provider.on('close', () => this.providerLeft());
  }

  /** Begins to pass bytes. @param head of the response to the handshake, for the client */
  start(head: string): void {
    const { client, provider } = this;
    if (this.end !== null) return;
    // Node's parser is detached with its listeners; it is freed when the socket closes.
    client.removeAllListeners('data');
    client.removeAllListeners('end');
    client.write(head, 'latin1');
    client.on('data', this.onClientData);
    client.on('end', () => this.clientLeft());
    client.on('close', () => this.clientLeft());
    client.on('drain', () => provider.resume());
    client.setKeepAlive(true, 60_000);
    provider.setNoDelay(true);
    provider.on('data', this.onProviderData);
    provider.on('end', () => this.providerLeft());
    provider.on('drain', () => client.resume());
    client.resume();
    // undici has just removed a 'readable' listener, which takes effect in the next tick.
    process.nextTick(() => provider.resume());
    if (client.destroyed) this.clientLeft();
    else if (provider.destroyed) this.providerLeft();
  }

  /** Ends the WebSocket with a close frame to both sides, once the frames that have begun are complete. */
  close(code: number, reason: string, errorCode: string): void {
    if (this.end !== null) return;
    this.finish({ outcome: 'interrupted', errorCode });
    const { client, provider } = this;
    const frame = closeFrame(code, reason, false);
    if (this.clientFrames.isBetweenFrames) provider.write(closeFrame(code, reason, true));
    if (this.serverFrames.isBetweenFrames) this.closeClient(frame);
    else if (this.serverFrames.isBroken || client.destroyed) this.cut();
    else this.pending = { frame, timer: setTimeout(() => this.cut(), FRAME.ms) };
  }

  /** Cuts both connections at once. */
  cut(): void {
    this.finish({ outcome: 'interrupted', errorCode: null });
    if (this.pending !== null) clearTimeout(this.pending.timer);
    this.client.destroy();
    this.provider.destroy();
  }

  private readonly onClientData = (chunk: Buffer): void => {
    if (this.end !== null) return;
    this.record.requestBytes += chunk.length;
    this.clientFrames.push(chunk);
    if (!this.provider.write(chunk)) this.client.pause();
  };

  private readonly onProviderData = (chunk: Buffer): void => {
    if (this.end !== null && this.pending === null) return;
    this.providerSentAt = performance.now();
    this.serverFrames.push(chunk);
    if (this.serverFrames.isBroken) this.usage.broken();
    if (this.pending !== null) {
      this.passPending(chunk, this.pending);
      return;
    }
    this.record.responseBytes += chunk.length;
    if (!this.client.write(chunk)) this.provider.pause();
  };

  /** Passes the rest of the frame that was begun, and then the close frame. */
  private passPending(chunk: Buffer, { frame, timer }: { frame: Buffer; timer: NodeJS.Timeout }): void {
    const { lastEnd, isBroken } = this.serverFrames;
    this.client.write(lastEnd === 0 ? chunk : chunk.subarray(0, lastEnd));
    if (lastEnd === 0 && !isBroken) return;
    clearTimeout(timer);
    this.pending = null;
    if (isBroken) this.cut();
    else this.closeClient(frame);
  }

  private closeClient(frame: Buffer): void {
    this.client.write(frame);
    this.closeBoth();
  }

  private clientLeft(): void {
    this.finish(
      this.closeSeen || this.usage.isBetweenResponses
        ? { outcome: 'completed', errorCode: null }
        : { outcome: 'client_aborted', errorCode: null },
    );
    this.closeBoth();
  }

  private providerLeft(): void {
    this.finish(
      this.closeSeen
        ? { outcome: 'completed', errorCode: null }
        : { outcome: 'truncated', errorCode: 'upstream_invalid_response' },
    );
    if (this.pending !== null) this.cut();
    else this.closeBoth();
  }

  private get closeSeen(): boolean {
    return this.clientCloseSeen || this.usage.closeSeen;
  }

  private finish(end: SessionEnd): void {
    if (this.end !== null) return;
    this.end = end;
    this.onEnd(end);
  }

  /** What was written is still sent, and what still comes is discarded for a while. */
  private closeBoth(): void {
    for (const socket of [this.client, this.provider]) {
      if (socket.destroyed || socket.writableEnded) continue;
      socket.resume();
      closeLingering(socket);
    }
  }
}
