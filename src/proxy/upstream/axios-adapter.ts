import type { HttpModuleOptions } from '@nestjs/axios';
import type { AxiosAdapter, AxiosInstance, AxiosResponse, InternalAxiosRequestConfig } from 'axios';
import type { Exchange } from '../exchange.js';
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
      await exchange.run(pools.for(exchange.provider.origin));
      return { data: null, status: 0, statusText: '', headers: {}, config };
    },
    transformRequest: [],
    transformResponse: [],
    validateStatus: null,
  };
}

/**
 * Lets requests go straight to the adapter while nobody has registered an interceptor: without one all that axios does
 * on the way there is to merge headers and defaults that a call does not have (25 µs of mergeConfig and promises on
 * Node 20). With one, and for every other setting of the instance's defaults, axios itself is asked.
 */
export function useAdapterDirectly(axios: AxiosInstance): void {
  const wholeRoad = axios.request.bind(axios);
  const { request, response } = axios.interceptors;
  const { adapter } = axios.defaults;
  axios.request = ((config: InternalAxiosRequestConfig) =>
    request.handlers?.length || response.handlers?.length || axios.defaults.adapter !== adapter
      ? wholeRoad(config)
      : (adapter as AxiosAdapter)(config)) as AxiosInstance['request'];
}
