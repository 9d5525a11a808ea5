import { HttpService } from '@nestjs/axios';
import { Inject, Injectable } from '@nestjs/common';
import type { AxiosInstance, AxiosRequestConfig } from 'axios';
import { Observable } from 'rxjs';
import type { Exchange } from '../exchange/exchange.js';
import { UpstreamPools } from './upstream-pools.js';

/** `method` and `url` are the client's; `data` sends the raw body and passes the response on. */
export interface UpstreamRequest extends AxiosRequestConfig<Exchange> {
  data: Exchange;
}

/** HttpService, but undici runs a call, because axios would change headers and hold chunks in a stream of its own. */
@Injectable()
export class UpstreamHttpService extends HttpService {
  // Otherwise Nest takes the token of HttpService's parameter, which subclasses inherit.
  constructor(@Inject(UpstreamPools) private readonly pools: UpstreamPools) {
    super();
  }

  /**
   * @returns runs the call when it is subscribed to, which can be done once. It emits nothing, and completes when the last
   * byte is written to the client, or the client's socket is closed. With an error, nothing was sent to the client yet
   */
  override request({ data: exchange }: UpstreamRequest): Observable<never> {
    return new Observable((subscriber) => {
      exchange.run(this.pools.for(exchange.call.provider.origin), subscriber);
    });
  }

  /** @throws Error always: what is registered there would never run */
  override get axiosRef(): AxiosInstance {
    throw new Error(
      'Calls to providers do not pass through axios, so its interceptors would not see them. Override request() of HttpService.',
    );
  }
}
