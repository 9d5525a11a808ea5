import { IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import type { Request, Response } from 'express';
import { firstHeader } from '../platform/raw-headers.js';

const NOTHING = Buffer.alloc(0);
/** RFC 9112 4: a reason phrase is visible ASCII, spaces and tabs; undici reads it as UTF-8. */
const ASCII_REASON = /^[\t\x20-\x7e]*$/;
/**
 * Node reads a Content-Disposition that follows a Content-Length as latin-1 bytes and writes them as if they were UTF-8,
 * or throws where they are not (lib/_http_outgoing.js, https://github.com/nodejs/node/pull/46528).
 */
const REREADS_DISPOSITION = rereadsDisposition();
const NON_ASCII = /[^\x00-\x7f]/;

/** The client's side of one call: how the answer's bytes get out, and whether it is the client that is waited for. */
export class ResponseWriter {
  private bodyStarted = false;
  private over = false;
  private framedByLength = false;
  /** Whose 'drain' is waited for. */
  private drained: Socket | null = null;

  /**
   * @param idleTimeoutMs how long the client may neither send nor take a byte while it must
   * @param onDrained called when the client has taken what it was sent
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
   * Sends the head with the first chunk of the same read of the provider's socket, or alone, but never later.
   *
   * @throws Node's error when a header is none; nothing is sent then
   */
  writeHead(status: number, reason: string, headers: string[], framedByLength: boolean): void {
    if (this.over) return;
    this.framedByLength = framedByLength;
    if (framedByLength && REREADS_DISPOSITION) keepDisposition(headers);
    this.res.sendDate = false;
    this.res.writeHead(status, ASCII_REASON.test(reason) ? reason : (STATUS_CODES[status] ?? ''), headers);
    process.nextTick(flushHead, this);
  }

  /** True when more may come at once; else onDrained tells when. */
  write(chunk: Buffer): boolean {
    if (this.over) return true;
    this.bodyStarted = true;
    if (this.res.write(chunk)) return true;
    this.awaitDrain();
    return false;
  }

  /** The end of the answer is there and comes as soon as it may: a head that is still to be sent goes with it. */
  expectEnd(): void {
    this.bodyStarted = true;
  }

  /** The answer is there to its end: with this last chunk, if any. */
  end(last?: Buffer): void {
    if (this.over) return;
    this.bodyStarted = true;
    this.res.end(last);
    if (this.res.writableLength > 0) this.waitForClient(true);
  }

  /**
   * RFC 8297: hints may go to HTTP/1.1 clients. Only `Link` lines are passed. A client that has not read what it was sent
   * before gets none: hints are optional.
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

  /** Makes a break visible: an answer framed by the end of its connection must not end like a whole one. */
  abort(): void {
    const { res } = this;
    if (res.chunkedEncoding || this.framedByLength || res.socket === null) res.destroy();
    else res.socket.resetAndDestroy();
  }

  /** Arms the client's idle time while it is the client that must act, and lifts it while the provider must. */
  waitForClient(forClient: boolean): void {
    const { socket } = this.res;
    const ms = forClient ? this.idleTimeoutMs : 0;
    if (socket !== null && socket.timeout !== ms) socket.setTimeout(ms);
  }

  /** The call is over, or its client is gone: nothing more is written or told. */
  detach(): void {
    this.over = true;
    this.drained?.off('drain', this.onDrain);
  }

  /** An empty chunk, for flushHeaders() would send latin-1 bytes of the head as UTF-8. */
  flushHead(): void {
    if (!this.bodyStarted && !this.over) this.res.write(NOTHING);
  }

  /** Passes the drain on. */
  resume(): void {
    if (!this.over) this.onDrained();
  }

  private awaitDrain(): void {
    if (this.drained !== null) return;
    this.waitForClient(true);
    this.drained = this.res.socket!;
    this.drained.once('drain', this.onDrain);
  }

  private readonly onDrain = (): void => {
    this.drained = null;
    if (this.over) return;
    this.waitForClient(false);
    // Not at once: the drain may have been said while undici's parser runs, which cannot be resumed from inside.
    process.nextTick(resume, this);
  };
}

function flushHead(answer: ResponseWriter): void {
  answer.flushHead();
}

function resume(answer: ResponseWriter): void {
  answer.resume();
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

/** Encodes each Content-Disposition that Node would read again so that it reads what the provider sent. */
function keepDisposition(headers: string[]): void {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.length !== 19 || headers[i]!.toLowerCase() !== 'content-disposition') continue;
    if (!NON_ASCII.test(headers[i + 1]!)) continue;
    const length = firstHeader(headers.slice(0, i), 'content-length');
    if (Number(length ?? 0) > 0) headers[i + 1] = Buffer.from(headers[i + 1]!, 'utf8').toString('latin1');
  }
}
