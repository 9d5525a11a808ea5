import { IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import type { Request, Response } from 'express';
import type { GatewayErrorCode } from '../../errors/gateway-error.js';
import type { Outcome } from '../../request-log/outcome.js';
import { firstHeader } from '../../platform/raw-headers.js';

const EMPTY = Buffer.alloc(0);
/** RFC 9112 4: a reason phrase is visible ASCII, spaces and tabs; undici reads it as UTF-8. */
const ASCII_REASON = /^[\t\x20-\x7e]*$/;
/**
 * True if this version of Node converts it: Node reads a Content-Disposition that follows a Content-Length as latin-1 bytes and writes them as if they were UTF-8,
 * or throws where they are not (lib/_http_outgoing.js, https://github.com/nodejs/node/pull/46528).
 */
const REREADS_DISPOSITION = rereadsDisposition();
const NON_ASCII = /[^\x00-\x7f]/;

/** Writes the response of one call to its client, and times the client out while it neither sends nor reads. */
export class ResponseWriter {
  private bodyStarted = false;
  private detached = false;
  private framedByLength = false;
  /** The socket whose 'drain' event is awaited. */
  private drained: Socket | null = null;

  /**
   * @param idleTimeoutMs how long the client may neither send nor read a byte while the call waits for it
   * @param onDrained called when the client has read what was written
   */
  constructor(
    private readonly req: Request,
    private readonly res: Response,
    private readonly idleTimeoutMs: number,
    private readonly onDrained: () => void,
  ) {
    // RFC 9112 6.1: no Transfer-Encoding towards HTTP/1.0; Node would send it to a client that says `TE: chunked`.
    if (req.httpVersionMinor === 0) res.useChunkedEncodingByDefault = false;
  }

  /**
   * Sends the head: together with the first chunk if both came in the same read of the provider's socket, otherwise alone.
   *
   * @throws Node's error for an invalid header; nothing is sent then
   */
  writeHead(status: number, reason: string, headers: string[], framedByLength: boolean): void {
    if (this.detached) return;
    this.framedByLength = framedByLength;
    if (framedByLength && REREADS_DISPOSITION) keepDisposition(headers);
    this.res.sendDate = false;
    // A head with Expect is written by writeHead() itself, in the socket's default encoding.
    const isWritten = firstHeader(headers, 'expect') !== undefined;
    if (isWritten) this.res.socket?.setDefaultEncoding('latin1');
    this.res.writeHead(status, ASCII_REASON.test(reason) ? reason : (STATUS_CODES[status] ?? ''), headers);
    if (isWritten) this.res.socket?.setDefaultEncoding('utf8');
    process.nextTick(flushHead, this);
  }

  /** @returns true if more may be written at once; otherwise wait for onDrained */
  write(chunk: Buffer): boolean {
    if (this.detached) return true;
    this.bodyStarted = true;
    if (this.res.write(chunk)) return true;
    this.awaitDrain();
    return false;
  }

  /**
   * Announces that end() follows shortly, with this last chunk if there is one: a head that is not sent yet is sent together
   * with the end.
   */
  expectEnd(_last?: Buffer): void {
    this.bodyStarted = true;
  }

  /** Ends the response, with this last chunk if there is one. */
  end(last?: Buffer): void {
    if (this.detached) return;
    this.bodyStarted = true;
    this.res.end(last);
    if (this.res.writableLength > 0) this.waitForClient(true);
  }

  /**
   * Sends 103 Early Hints (RFC 8297) to HTTP/1.1 clients, with the `Link` lines only. Hints are optional: a client that has
   * not read what it was sent before gets none.
   */
  earlyHints(headers: readonly string[]): void {
    const { res, req } = this;
    let links = '';
    for (let i = 0; i < headers.length; i += 2) {
      if (headers[i]!.toLowerCase() === 'link') links += `${headers[i]}: ${headers[i + 1]}\r\n`;
    }
    if (links === '' || req.httpVersionMinor === 0 || res.socket === null || res.headersSent) return;
    if (res.socket.writableNeedDrain) return;
    res.socket.write(`HTTP/1.1 103 Early Hints\r\n${links}\r\n`, 'latin1');
  }

  /** Destroys the connection. A response without length or chunks is reset, so that it does not look complete. */
  abort(): void {
    const { res } = this;
    if (res.chunkedEncoding || this.framedByLength || res.socket === null) res.destroy();
    else res.socket.resetAndDestroy();
  }

  /** Starts the client's idle timeout while the call waits for the client, and stops it while it waits for the provider. */
  waitForClient(forClient: boolean): void {
    const { socket } = this.res;
    const ms = forClient ? this.idleTimeoutMs : 0;
    if (socket !== null && socket.timeout !== ms) socket.setTimeout(ms);
  }

  /** Stops writing and calling back: the call is over, or its client has disconnected. */
  detach(): void {
    this.detached = true;
    this.drained?.off('drain', this.onDrain);
  }

  /** Writes an empty chunk, because flushHeaders() would send latin-1 bytes of the head as UTF-8. */
  flushHead(): void {
    if (!this.bodyStarted && !this.detached) this.res.write(EMPTY);
  }

  resume(): void {
    if (!this.detached) this.onDrained();
  }

  private awaitDrain(): void {
    if (this.drained !== null) return;
    this.waitForClient(true);
    this.drained = this.res.socket!;
    this.drained.once('drain', this.onDrain);
  }

  private readonly onDrain = (): void => {
    this.drained = null;
    if (this.detached) return;
    this.waitForClient(false);
    // Deferred: 'drain' may be emitted while undici's parser runs, which cannot be resumed from inside.
    process.nextTick(resume, this);
  };
}

function flushHead(writer: ResponseWriter): void {
  writer.flushHead();
}

function resume(writer: ResponseWriter): void {
  writer.resume();
}

function rereadsDisposition(): boolean {
  try {
    const headers = ['Content-Length', '1', 'Content-Disposition', '\xff'];
    new ServerResponse(new IncomingMessage(new Socket())).writeHead(200, headers);
    return false;
  } catch {
    return true;
  }
}

/** Encodes each Content-Disposition that Node would convert, so that the client gets the provider's bytes. */
function keepDisposition(headers: string[]): void {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.length !== 19 || headers[i]!.toLowerCase() !== 'content-disposition') continue;
    if (!NON_ASCII.test(headers[i + 1]!)) continue;
    const length = firstHeader(headers.slice(0, i), 'content-length');
    if (Number(length ?? 0) > 0) headers[i + 1] = Buffer.from(headers[i + 1]!, 'utf8').toString('latin1');
  }
}

/** Node's parser rejected what the client sent. INVALID_EOF_STATE is left out: the client disconnected in a message. */
const BROKEN_FRAMING = /^HPE_(?!INVALID_EOF_STATE)/;

/** Outcome and error code of a call whose response was written to the end, or whose client's socket is closed. */
export function outcomeOfClose(req: Request, res: Response): [Outcome, GatewayErrorCode?] {
  if (res.writableFinished) return ['completed'];
  const { code = '' } = (req.socket.errored ?? {}) as { code?: string };
  return BROKEN_FRAMING.test(code) ? ['client_error', 'invalid_request'] : ['client_aborted'];
}
