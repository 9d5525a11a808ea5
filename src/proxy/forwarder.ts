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
    // An HTTP/1.0 client does not know the word (RFC 9110 15.2). Behind another answer in a pipeline it is not said:
    // Node would put it between the head and the body of this one. No client waits for it without end.
    if (req.headers.expect !== undefined && req.httpVersionMinor > 0 && res.socket !== null)
      res.writeContinue();
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
