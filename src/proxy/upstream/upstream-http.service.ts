import { HttpService } from '@nestjs/axios';
import { Inject, Injectable } from '@nestjs/common';
import type { AxiosInstance, AxiosRequestConfig } from 'axios';
import { Observable } from 'rxjs';
import type { Exchange } from '../exchange.js';
import { UpstreamPools } from './upstream-pools.js';

/** A call to a provider: `method` and `url` are the client's, `data` is what sends the body and passes the response on. */
export interface UpstreamRequest extends AxiosRequestConfig<Exchange> {
  data: Exchange;
}

/** Stands in for HttpService, to call providers by undici: axios would need the response as a whole, or as a stream. */
@Injectable()
export class UpstreamHttpService extends HttpService {
  // Named, because HttpService names its own parameter, which subclasses inherit.
  constructor(@Inject(UpstreamPools) private readonly pools: UpstreamPools) {
    super();
  }

  /**
   * @returns runs the call once it is subscribed to, and emits nothing: it completes when the last byte is written to the
   * client, or the client's socket is closed. Its error is a GatewayError, and nothing was sent to the client yet
   */
  override request({ data: exchange }: UpstreamRequest): Observable<never> {
    return new Observable((subscriber) => {
      exchange.run(this.pools.for(exchange.provider.origin), subscriber);
    });
  }

  /** @throws Error always: what is registered there would never run */
  override get axiosRef(): AxiosInstance {
    throw new Error(
      'Calls to providers do not pass through axios, so its interceptors would not see them. Override request() of HttpService.',
    );
  }
}
