import { HttpService } from '@nestjs/axios';
import { Injectable } from '@nestjs/common';
import axios from 'axios';
import type { Request, Response } from 'express';
import { lastValueFrom } from 'rxjs';
import { InjectEnv } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { Exchange } from './exchange.js';

/** HttpService makes a cancel token for each request that has none; calls are cancelled by their Exchange. */
const NEVER_CANCELLED = axios.CancelToken.source().token;

/** Carries one call to its provider and the answer back. */
@Injectable()
export class Forwarder {
  constructor(
    private readonly http: HttpService,
    @InjectEnv() private readonly env: Settings,
  ) {}

  /**
   * @returns settles at the end of the call's life: the last byte is out or the client's socket is dead
   * @throws Refusal while nothing has been sent to the client
   */
  async forward(req: Request, res: Response): Promise<void> {
    // The client waits for our word before it sends its body (RFC 9110 10.1.1); key and size are known to be good.
    // An HTTP/1.0 client does not know the word (RFC 9110 15.2).
    if (req.headers.expect !== undefined && req.httpVersionMinor > 0) {
      // A client that left during the look-up of its key leaves a response that nothing more is told.
      if (res.socket === null && !req.socket.destroyed) await turnOf(res);
      res.writeContinue();
    }
    const exchange = new Exchange(req, res, req.provider, req.call, this.env);
    await lastValueFrom(
      this.http.request<null>({
        method: req.method,
        url: req.target.upstreamPath,
        data: exchange,
        cancelToken: NEVER_CANCELLED,
      }),
    );
  }
}

/**
 * Settles when a pipelined response's turn on its connection comes, or its client has left. Before that Node would put
 * the word to continue between the head and the body of this very response.
 */
function turnOf(res: Response): Promise<void> {
  return new Promise((resolve) => res.once('socket', () => resolve()).once('close', () => resolve()));
}
