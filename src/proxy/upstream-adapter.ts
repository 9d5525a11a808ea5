import type { HttpModuleOptions } from '@nestjs/axios';
import type { AxiosResponse, InternalAxiosRequestConfig } from 'axios';
import type { Exchange } from './exchange.js';
import type { UpstreamPools } from './upstream-pools.js';

/**
 * Options that turn HttpService into a thin seam over undici. The whole call travels as `data`: axios passes a class
 * instance on by reference. Nothing of axios touches the wire: no headers of its own, no redirects, no decompression,
 * no transformation, no status judgement.
 */
export function upstreamHttpOptions(pools: UpstreamPools): HttpModuleOptions {
  return {
    adapter: async (config: InternalAxiosRequestConfig): Promise<AxiosResponse<null>> => {
      const exchange = config.data as Exchange;
      await exchange.run(pools.for(exchange.origin));
      return { data: null, status: 0, statusText: '', headers: {}, config };
    },
    transformRequest: [],
    transformResponse: [],
    validateStatus: null,
  };
}
